"""What users read is plain English: some turns of phrase that readers stumbled over do not come back."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PAGES = [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")]
# The reasons for decisions are read by developers, and the changelog tells what once was called so.
UNREAD = {"decisions.md"}
FORBIDDEN = {
    "not to be told": "cannot be determined",
    "cannot be told": "cannot be determined",
    "steps are told by": "steps are detected from",
    "steps, told by": "steps, detected from",
    "told from its name": "by its name",
    "in its way:": "blockers:",
    "launch dearer": "costs more to launch",
    "for want of width": "columns hidden (terminal too narrow)",
    "hand a trace over": "convert a trace",
    "it is only just so": "the margin is small",
}


def texts():
    """Whatever may be printed: strings of the program that are no docstrings, its SQL, its templates, its documents."""
    for path in sorted((REPOSITORY / "nsys_insight").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        unread = {
            id(node.body[0].value) for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body and isinstance(node.body[0], ast.Expr)
        }  # fmt: skip
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in unread:
                yield path, node.value
    for path in sorted((REPOSITORY / "queries").rglob("*.sql")):
        lines = path.read_text(encoding="utf-8").splitlines()
        yield path, "\n".join(line for line in lines if not line.lstrip().startswith("--"))
    for path in sorted((REPOSITORY / "nsys_insight").rglob("*.j2")):
        yield path, path.read_text(encoding="utf-8")
    for path in PAGES:
        if path.name not in UNREAD:
            yield path, path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def printed():
    return [(path, " ".join(text.lower().split())) for path, text in texts()]


@pytest.mark.parametrize("phrase", FORBIDDEN)
def test_a_phrase_that_readers_stumbled_over_does_not_come_back(printed, phrase):
    assert [path.name for path, text in printed if phrase in text] == [], f"say: {FORBIDDEN[phrase]}"


def test_what_is_looked_through_is_what_users_read(printed):
    read = " ".join(text for _, text in printed)
    assert all(text in read for text in ("kernels by gpu time", "cannot be determined from this trace", "one of: "))
