"""The words this project does not use, and where they stand.

`find_hits(paths)` reads names, docstrings, comments, printed strings, SQL and Markdown. Run as a script, it prints the
hits of the files and folders that it is given:

    python3 tests/word_list.py nsys_insight/cli queries/model
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

REPOSITORY = Path(__file__).parents[1]

# A name is a noun or a verb phrase. These are participles, prepositions, pronouns and adverbs that say nothing alone.
VAGUE_NAMES = frozenset(
    """
    above about alike alone another apart around asked at began begun behind below beside besides beyond both built
    by called changed charged chosen compared counted cut described done drawn during each ended every everywhere
    everything few filled fitted folded for_ found from_ gained given gone grouped handed held here how in_ inside
    its kept known lacking lasting launched least led listed looked looks made many marked mean_ meant measured
    mine more most moved named near none_ numbered of often one ones opened other_ others ours owed own paced parted
    parts per placed places printed put ran ranked reached read_ recorded rest said same saved scoped seen sent settled
    several shown sized slotted some spent split_ standing steady stored suited summed taken tells theirs there these
    thing things those timed to_ told tried turned typed typical uncut under_way unread until used usual wanted way
    ways what when_ where which who whole whose why within without worst written yet
    """.split()  # noqa: SIM905
)
# Words that are in no name at all, alone or joined with others.
VAGUE_WORDS = frozenset(
    """
    anew asked beside besides dearer kept lacking looks meant owed played rhythm said suited tells told unjudged wanted
    ways whole whichever
    """.split()  # noqa: SIM905
)
# Names that stay, each with the reason.
NAMES_THAT_STAY = {
    "parts": "a parameter of the Python API: Trace(parts=...)",
    "steady": "a parameter of the Python API and of tools for agents: scope(steady=True)",
}

# Regular expressions over texts in lower case, with what to say instead.
PHRASES = {
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
    # Numbers (docs/style.md).
    r"\d %(?![\w(}])": "no space: 86.3%",
    r"\b(calls|launches|waits|reads|kernels|copies|collectives|times|operations|messages|synchronizations|ns|µs|ms)"
    r" an? (step|token|second|launch)\b": "per step",
    r"\bcharged to\b": "attributed to, or a part in brackets: 86.3% (launch 85.8%)",
    r"\b(scatters?|scattered) by\b": "varies by",
    # Wordings that readers stumbled over.
    r"\bunder way\b": "in progress",
    r"\bnothing but\b": "only",
    r"\bthree quarters or less\b": "75% or less",
    r"\bcopies alone\b": "non-overlapped copies",
    r"\b(near|from) (its|their) roofs?\b": "roofline",
    r"\bbudgets? ((is|are) )?(kept|broken)\b": "the limit is met, the limit is exceeded",
    r"\bshow(s)? (itself|themselves)\b": "renders",
    r"\bhow good it is\b": "validation",
    # American spelling; quantise is the name of a family.
    r"\b\w*(optimis|synchronis|serialis|summaris|specialis|tokenis|initialis|neighbour|colour|behaviour)": "-ize, -or",
}

# The same for docstrings and comments, of Python and of SQL.
CODE_PHRASES = {
    r"\bthat which\b|\bof which\b|\bof whom\b|\bwith which\b(?! to)": "two sentences",
    r"\bwhat is (?!new\b)[a-z]+ is\b": "name the thing",
    r"\bis said\b|\bare said\b|\bsays of\b|\bsay of\b|\bsaid of\b": "reported, stated, printed",
    r"\bwhat of\b": "which part of",
    r"\bso many\b": "the number of",
    r"\bbut by who\b|\bbut for\b": "except",
    r"\bno more\b(?! than)": "no longer",
    r"\bbeside\b": "next to, along with, and",
    r"\bwhole\b": "entire, full, unscoped, complete",
    r"\bkept\b": "stored, cached",
    r"\basked for\b": "requested",
    r"\b(is|are|was|were) (told|asked|meant|wanted)\b": "an active sentence",
    r"\bwhoever\b|\bwherever\b|\bwhenever\b|\bwhichever\b|\bwhatever\b": "any, every, each",
    r"\bat hand\b|\bby itself\b|\bby themselves\b": "available; alone, separately",
    r"\bthe one (that|which|with|of|who)\b|\bthe ones (that|which|with|of|who)\b": "name the thing",
    r"\bis none\b|\bare none\b": "is not a …, there is no …",
    r"\bnothing but\b": "only",
    r"\bas (it|they) (is|are)\b": "unchanged",
}

# Documents that are made from texts which are read where they stand.
GENERATED = frozenset({"reports.md"})
# It shows what not to write.
_STYLE_SHEET = "style.md"
_STRING_OR_COMMENT = re.compile(r'''""".*?"""|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*''', re.DOTALL)
_CTE = re.compile(
    r"(?:\bWITH\s+(?:RECURSIVE\s+)?|\),\s*(?:--[^\n]*\n\s*)*)([a-z_][a-z0-9_]*)\s*(?:\([a-z0-9_,\s]*\)\s*)?"
    r"AS\s+(?:(?:NOT\s+)?MATERIALIZED\s+)?\(",
    re.IGNORECASE,
)


class Hit(NamedTuple):
    """A word of the list: the file, the line, the text around it, and what to write instead."""

    path: Path
    line: int
    text: str
    advice: str


def find_hits(paths: Iterable[Path]) -> Iterator[Hit]:
    """Find the words of the list in files and folders: `.py`, `.sql`, `.md`, `.j2` and `tables.toml`."""
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            read = _READERS.get(file.suffix) or _READERS.get(file.name)
            if read and file.is_file() and file.name not in {*GENERATED, _STYLE_SHEET}:
                yield from read(file, file.read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def _list_nodes(source: str) -> list[ast.AST]:
    """List all nodes of a Python file, for all that is read from it in turn."""
    nodes: list[ast.AST] = [ast.parse(source)]
    for node in nodes:  # which grows; `ast.walk` takes three times as long
        for value in vars(node).values():
            if isinstance(value, list):
                nodes += [child for child in value if isinstance(child, ast.AST)]
            elif isinstance(value, ast.AST) and value._fields:
                nodes.append(value)
    return nodes


def bound_names(source: str) -> Iterator[tuple[str, int]]:
    """List the names that a Python file defines, with their lines: functions, parameters, variables, attributes."""
    for node in _list_nodes(source):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node.lineno
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name, node.lineno
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno


def is_vague(name: str) -> bool:
    """Whether a name says nothing about its value."""
    bare = name.strip("_").lower()
    return name not in NAMES_THAT_STAY and (bare in VAGUE_NAMES or not VAGUE_WORDS.isdisjoint(bare.split("_")))


def is_prose(text: str) -> bool:
    """Whether people read a string: it is more than one word, and neither a statement nor a pattern."""
    statement = r"\(\?i\)|\bselect\b.*\bfrom\b|\bcreate (or replace )?(table|view|temp)\b"
    return " " in text and not re.search(statement, text.lower(), re.DOTALL)


@cache
def printed_texts(path: Path, source: str) -> list[tuple[int, str]]:
    """List the texts of a file that a user can see, with their lines."""
    return list(_find_printed_texts(path, source))


def _find_printed_texts(path: Path, source: str) -> Iterator[tuple[int, str]]:
    if path.suffix == ".py":
        docstrings = {id(node) for node, _ in _docstrings(source, of_commands=False, in_cli=path.parent.name == "cli")}
        for node in _list_nodes(source):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield node.lineno, node.value
    elif path.suffix == ".sql":
        header, mark, statement = source.partition("*/")
        if mark and header.startswith("/*"):
            yield 1, "\n".join(line for line in header.splitlines() if not line.startswith("--"))
        else:
            statement = source
        code = re.sub(r"^\s*--.*$", "", statement, flags=re.MULTILINE)
        for text in re.finditer(r"'((?:[^']|'')*)'", code):
            yield source.count("\n", 0, source.find(text[0])) + 1, text[1].replace("''", "'")
    else:  # without examples and outputs, which are made by running them
        yield 1, re.sub(r"^```.*?^```", "", source, flags=re.DOTALL | re.MULTILINE)


def _docstrings(source: str, *, of_commands: bool, in_cli: bool) -> Iterator[tuple[ast.Constant, int]]:
    # The docstring of a command is its help: users read it.
    read_by_developers = (ast.Module, ast.ClassDef) if in_cli and not of_commands else None
    for node in _list_nodes(source):
        if not isinstance(
            node, read_by_developers or (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        ):
            continue
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            yield first.value, first.lineno


def _list_comments(source: str) -> Iterator[tuple[int, str]]:
    """List the comments of a Python file, with their lines."""
    line, position = 1, 0
    for token in _STRING_OR_COMMENT.finditer(source):
        if token[0].startswith("#"):
            line += source.count("\n", position, token.start())
            position = token.start()
            yield line, token[0]


def _read_python(path: Path, source: str) -> Iterator[Hit]:
    for name, line in bound_names(source):
        if is_vague(name):
            yield Hit(path, line, name, "a noun or a verb phrase")
    for node, line in _docstrings(source, of_commands=True, in_cli=False):
        yield from _match(path, line, str(node.value), PHRASES | CODE_PHRASES)
    for line, text in _join_lines([*_list_comments(source)]):
        yield from _match(path, line, text, PHRASES | CODE_PHRASES)
    if "tests" not in path.parts:
        for line, text in printed_texts(path, source):
            if is_prose(text):
                yield from _match(path, line, text, PHRASES)


def _read_sql(path: Path, source: str) -> Iterator[Hit]:
    for name in _CTE.finditer(source):
        if is_vague(name[1]):
            yield Hit(path, source.count("\n", 0, name.start(1)) + 1, name[1], "a noun that says what a row is")
    lines = enumerate(source.splitlines(), 1)
    comments = [(number, line.partition("--")[2]) for number, line in lines if "-- " in line]
    for line, text in _join_lines(comments):
        yield from _match(path, line, text, PHRASES | CODE_PHRASES)
    for line, text in printed_texts(path, source):
        yield from _match(path, line, text, PHRASES)


def _read_page(path: Path, source: str) -> Iterator[Hit]:
    for line, text in printed_texts(path, source):
        yield from _match(path, line, text, PHRASES)


_READERS = {".py": _read_python, ".sql": _read_sql, ".md": _read_page, ".j2": _read_page, "tables.toml": _read_page}


def _join_lines(comments: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Join the lines of one comment: a phrase may be broken over two."""
    start, joined, last = 0, "", -1
    for line, text in comments:
        if line != last + 1:
            if joined:
                yield start, joined
            start, joined = line, ""
        joined, last = f"{joined} {text.strip('#- ')}", line
    if joined:
        yield start, joined


@cache
def _join_phrases(*phrases: str) -> re.Pattern[str]:
    """Return one pattern for all phrases. Most texts have none of them, and one search tells so."""
    at_words = [phrase.removeprefix(r"\b") for phrase in phrases if phrase.startswith(r"\b") and r"\1" not in phrase]
    elsewhere = [phrase for phrase in phrases if not phrase.startswith(r"\b") or r"\1" in phrase]
    # The number of a group that is repeated is that of its phrase alone.
    elsewhere = [p.replace("([a-z]{3,})", "(?P<word>[a-z]{3,})").replace(r"\1", "(?P=word)") for p in elsewhere]
    return re.compile("|".join([rf"\b(?:{'|'.join(at_words)})", *elsewhere]))


def _match(path: Path, line: int, text: str, phrases: dict[str, str]) -> Iterator[Hit]:
    low = " ".join(text.lower().split())
    if not _join_phrases(*phrases).search(low):
        return
    for phrase, advice in phrases.items():
        for match in re.finditer(phrase, low):
            yield Hit(path, line, low[max(0, match.start() - 40) : match.end() + 40], advice)


def main(arguments: list[str]) -> int:
    """Print the hits of files and folders, and their number by folder. Return 1 if there are any."""
    hits = list(find_hits([Path(argument).resolve() for argument in arguments]))
    for hit in hits:
        print(f"{hit.path.relative_to(REPOSITORY)}:{hit.line}: {hit.text!r}: {hit.advice}")
    for folder, number in sorted(Counter(str(hit.path.relative_to(REPOSITORY).parent) for hit in hits).items()):
        print(f"{number:5d} {folder}")
    return bool(hits)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
