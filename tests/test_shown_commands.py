"""Every command that a document shows is one, with these flags; console blocks run besides, in test_docs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from nsys_insight.cli import registry
from nsys_insight.cli.main import app

REPOSITORY = Path(__file__).parents[1]
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    REPOSITORY / "SECURITY.md",
    *sorted(page for page in (REPOSITORY / "docs").rglob("*.md") if page.name != "decisions.md"),
    *sorted((REPOSITORY / "nsys_insight" / "skills").rglob("*.md")),
]
# What stands for something else: `nsys-insight REPORT TRACE`, `nsys-insight …`.
PLACEHOLDERS = re.compile(r"…|\.\.\.|^nsys-insight (?:\[|[A-Z]{2})")

# The report and the command that CONTRIBUTING.md has its reader write.
EXAMPLES = ("short-kernels", "hello")


def shown(text):
    """Give the commands of a page: lines of code blocks, and what stands in backticks."""
    text = re.sub(r"\\\n\s*", " ", text)
    lines = re.findall(r"^(?:    |\$ )((?:[\w.]+=\S+ )?nsys-insight .+)$", text, re.MULTILINE)
    blocks = "\n".join(re.findall(r"^```(?:bash|sh|yaml)\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    lines += re.findall(r"^\s*(?:- run: )?(nsys-insight .+)$", blocks, re.MULTILINE)
    # A code span may go over the end of a line, but not over that of a paragraph.
    lines += [" ".join(span.split()) for span in re.findall(r"(?<!`)`(nsys-insight (?:[^`\n]|\n(?!\n))+)`(?!`)", text)]
    return dict.fromkeys(line for line in lines if not PLACEHOLDERS.search(line))


def commands_of(line):
    """Give the words behind each `nsys-insight` of a line of a shell."""
    words = shlex.split(line, comments=True)
    ends = {"|", "&&", ";", ">", "2>", "2>&1", "<", "||"}
    found = []
    while "nsys-insight" in words:
        words = words[words.index("nsys-insight") + 1 :]
        found.append(words[: next((at for at, word in enumerate(words) if word in ends), len(words))])
    return found


@pytest.fixture(scope="module")
def root():
    return typer.main.get_command(app)


def wrong(root, words):
    """Say what is not there of a command; values may stand for others, such as N and FILE."""
    if not words or words[0] in (
        *EXAMPLES,
        "help",
        "-V",
        "--version",
        "--help",
        "-h",
        "--pack-dir",
        "--install-completion",
    ):
        return None
    if not (command := registry._command(words[0])):
        return f"no command {words[0]}"
    context = root.make_context("nsys-insight", [words[0]])
    try:
        while True:
            context = command.make_context(words[0], list(words[1:]), parent=context)
            rest = [*context._protected_args, *context.args] if hasattr(command, "commands") else []
            if not rest:
                return None
            command, words = command.commands.get(rest[0]), rest
            if command is None:
                return f"no command {rest[0]}"
    except typer.Exit:
        return None
    except Exception as error:  # noqa: BLE001 - Click's classes are not public in Typer
        return str(error) if "No such" in str(error) else None


def test_every_command_that_is_shown_is_one(root):
    lines = {line: page.name for page in PAGES for line in shown(page.read_text(encoding="utf-8"))}
    assert len(lines) > 120
    found = {f"{page}: {line}": wrong(root, words) for line, page in lines.items() for words in commands_of(line)}
    assert {line: what for line, what in found.items() if what} == {}


def test_one_that_is_not_there_is_found(root):
    for line, said in (
        ("nsys-insight tpo x.sqlite", "no command tpo"),
        ("nsys-insight top x.sqlite --lmiit 3", "No such option"),
        ("nsys-insight ncu paln x.sqlite", "no command paln"),
        ("nsys-insight baseline save x.sqlite --nmae main", "No such option"),
        ("cat x && nsys-insight top x.sqlite | head; nsys-insight tops", "no command tops"),
    ):
        assert said in " ".join(str(wrong(root, words)) for words in commands_of(line))


def test_all_help_is_one_text(monkeypatch, capsys):
    monkeypatch.setattr(registry.Commands, "list_commands", lambda *_: ["top", "baseline", "cache"])
    typer.main.get_command(app)(["help", "--all"], prog_name="nsys-insight", standalone_mode=False)
    usages = re.findall(r"Usage: (nsys-insight(?: [a-z]+)*)", capsys.readouterr().out)
    assert usages == [
        "nsys-insight", "nsys-insight top", "nsys-insight baseline", "nsys-insight baseline save",
        "nsys-insight baseline list", "nsys-insight baseline show", "nsys-insight baseline rm", "nsys-insight cache",
        "nsys-insight cache clear",
    ]  # fmt: skip
