"""What users read is plain English in the words of the glossary; phrases that readers stumbled over stay away."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PAGES = [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")]
# These are generated from texts that are looked through.
UNREAD = {"facts.md", "findings.md", "model.md", "reports.md"}
# Regular expressions over texts in lower case, with what to say instead.
FORBIDDEN = {
    # Phrases that read as if translated.
    r"\bnot to be told\b|\bcannot be told\b": "cannot be determined",
    r"\btold\b(?! =)": "detected, found, distinguished, reported",
    r"\bnobody (?!none\b)": "unknown, cannot be determined; the passive",
    r"\bin its way:": "blockers:",
    r"\blaunch dearer\b": "costs more to launch",
    r"\bfor want of\b": "because … is missing; columns hidden (terminal too narrow)",
    r"\bhands? a trace over\b": "convert a trace",
    r"\bonly just so\b": "the margin is small",
    r"\bput down to\b": "attributed to",
    r"\bbesides\b": "in addition",
    r"\banew\b": "again",
    r"\blikewise\b": "say it again in full",
    r"\breckon": "calculate",
    r"\bin the mean\b": "on average",
    r"\bheld? (it|the host|the thread|a thread|the launching thread) up\b": "blocked",
    r"\b(runs?|ran) dry\b": "runs out of work",
    r"\bcome and go\b": "migrate",
    r"\b(win|wins|won|winning)\b": "save, can be saved",
    r"\bbegin of\b": "start of",
    r"\bplayed again\b": "replayed",
    r"\bin place of\b": "instead of",
    r"\bwork(s|ed)? out\b(?! of)": "calculate, process",
    r"\bworth a word\b": "worth reporting",
    r"\bwhatever its name says\b": "even if its name says Async",
    r"\bwhich way of\b": "how",
    r"\bowed to\b": "the cause of",
    r"\bthe ones? asked for\b": "the ones requested",
    r"\bdealt (out|with)\b": "handled, distributed",
    r"\bby turns\b": "in turn",
    r"\bgiven away\b": "shared",
    r"\b(it|they|that|this|which|who) (is|are) no [a-z]": "is not a …",
    # One word for one idea (docs/glossary.md).
    r"\b(of the|its|the|a step's) wall\b(?!( |-)time|-|_)": "wall time, step time",
    r"\bin all\b(?= \(|[,.;:)]|$)": "in total",
    r"\bkernels? of nccl\b|\bcollectives? of nccl\b": "NCCL kernels, NCCL collectives",
    r"\bcalls? of the operating system\b": "operating system calls",
    r"\b(?!long\b|mul\b|end\b)(?<![-.])([a-z]{3,}) \1\b(?![-.])": "a word once",
    # American spelling; quantise is the name of a family.
    r"\b\w*(optimis|synchronis|serialis|summaris|specialis|tokenis|initialis|neighbour|colour|behaviour)": "-ize, -or",
}


def literals(sql):
    """What of a statement may be printed: its strings, comments on views and columns among them."""
    code = "\n".join(line for line in sql.splitlines() if not line.lstrip().startswith("--"))
    return [text.replace("''", "'") for text in re.findall(r"'((?:[^']|'')*)'", code)]


def texts():
    """Whatever may be printed: strings of the program, docstrings of commands, its SQL, templates and documents."""
    for path in sorted((REPOSITORY / "nsys_insight").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        of_developers = (
            (ast.Module, ast.ClassDef) if path.parent.name == "cli" else (ast.Module, ast.ClassDef, ast.FunctionDef)
        )
        unread = {
            id(node.body[0].value) for node in ast.walk(tree)
            if isinstance(node, of_developers) and node.body and isinstance(node.body[0], ast.Expr)
        }  # fmt: skip
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in unread:
                yield path, node.value
    for path in sorted((REPOSITORY / "queries").rglob("*.sql")):
        header, mark, statement = path.read_text(encoding="utf-8").partition("*/")
        if mark and header.startswith("/*"):
            yield path, "\n".join(line for line in header.splitlines() if not line.startswith("--"))
        for text in literals(statement if mark else header):
            yield path, text
    pages = [path for end in ("*.j2", "*.md") for path in sorted((REPOSITORY / "nsys_insight").rglob(end))] + PAGES
    for path in pages:
        if path.name not in UNREAD:  # without examples and outputs, which tests/test_docs.py makes anew
            yield path, re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def is_prose(text):
    """Whether people read it: neither one word, as keys and lists of words are, nor a statement or a pattern."""
    return " " in text and not re.search(
        r"\(\?i\)|\bselect\b.*\bfrom\b|\bcreate (or replace )?(table|view|temp)\b", text
    )


@pytest.fixture(scope="module")
def printed():
    found = [(path, " ".join(text.lower().split())) for path, text in texts()]
    return [(path, text) for path, text in found if path.suffix != ".py" or is_prose(text)]


@pytest.mark.parametrize("phrase", FORBIDDEN)
def test_a_phrase_that_readers_stumbled_over_does_not_come_back(printed, phrase):
    found = re.compile(phrase)
    said = [
        (path.name, text[max(0, at.start() - 40) : at.end() + 40])
        for path, text in printed
        if (at := found.search(text))
    ]
    assert said == [], f"say: {FORBIDDEN[phrase]}"


def test_the_terms_of_the_glossary_are_those_that_are_used(printed):
    glossary = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8").lower()
    terms = [
        term
        for line in glossary.splitlines()
        if line.startswith("| **")
        for term in re.findall(r"\*\*([^*]+)\*\*", line)
    ]
    names = [path.stem.replace("-", " ") for path in (REPOSITORY / "queries").rglob("*.sql")]  # of reports and findings
    used = " ".join([*names, *(text for path, text in printed if path.name != "glossary.md")])
    assert len(terms) > 40
    assert [term for term in terms if term not in used] == []


def test_what_is_looked_through_is_what_users_read(printed):
    read = " ".join(text for _, text in printed)
    of_each_kind = (
        "kernels by gpu time",  # a report's header
        "cannot be determined from this trace",  # a sentence of the program
        "one of: ",  # help of a flag
        "one row per kernel execution on a gpu.",  # a comment of the model
        "no steps were found",  # a sentence made in SQL
    )
    assert [text for text in of_each_kind if text not in read] == []
