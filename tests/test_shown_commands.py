"""Every command that a document shows exists, with its flags. test_docs also runs the console blocks."""

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
# Commands with placeholders: `nsys-insight REPORT TRACE`, `nsys-insight …`.
PLACEHOLDERS = re.compile(r"…|\.\.\.|^nsys-insight (?:\[|[A-Z]{2})")

# The report and the command that CONTRIBUTING.md shows how to write.
EXAMPLES = ("short-kernels", "hello")


def find_commands(text):
    """Find the commands of a page, in lines of code blocks and in code spans."""
    text = re.sub(r"\\\n\s*", " ", text)
    lines = re.findall(r"^(?:    |\$ )((?:[\w.]+=\S+ )?nsys-insight .+)$", text, re.MULTILINE)
    blocks = "\n".join(re.findall(r"^```(?:bash|sh|yaml)\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    lines += re.findall(r"^\s*(?:- run: )?(nsys-insight .+)$", blocks, re.MULTILINE)
    # A code span may contain a line break, but not the end of a paragraph.
    lines += [" ".join(span.split()) for span in re.findall(r"(?<!`)`(nsys-insight (?:[^`\n]|\n(?!\n))+)`(?!`)", text)]
    return dict.fromkeys(line for line in lines if not PLACEHOLDERS.search(line))


def split_commands(line):
    """Return the words after each `nsys-insight` of a shell line."""
    words = shlex.split(line, comments=True)
    ends = {"|", "&&", ";", ">", "2>", "2>&1", "<", "||"}
    commands = []
    while "nsys-insight" in words:
        words = words[words.index("nsys-insight") + 1 :]
        commands.append(words[: next((index for index, word in enumerate(words) if word in ends), len(words))])
    return commands


@pytest.fixture(scope="module")
def root():
    return typer.main.get_command(app)


def find_problem(root, words):
    """Return which part of a command does not exist, or None. Values may be placeholders, such as N and FILE."""
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
    if not (command := registry._make_command(words[0])):
        return f"no command {words[0]}"
    context = root.make_context("nsys-insight", [words[0]])
    try:
        while True:
            context = command.make_context(words[0], list(words[1:]), parent=context)
            remaining = [*context._protected_args, *context.args] if hasattr(command, "commands") else []
            if not remaining:
                return None
            command, words = command.commands.get(remaining[0]), remaining
            if command is None:
                return f"no command {remaining[0]}"
    except typer.Exit:
        return None
    except Exception as error:  # noqa: BLE001 - Click's classes are not public in Typer
        return str(error) if "No such" in str(error) else None


def test_every_shown_command_exists(root):
    lines = {line: page.name for page in PAGES for line in find_commands(page.read_text(encoding="utf-8"))}
    assert len(lines) > 120
    problems = {
        f"{page}: {line}": find_problem(root, words) for line, page in lines.items() for words in split_commands(line)
    }
    assert {line: problem for line, problem in problems.items() if problem} == {}


def test_unknown_commands_are_found(root):
    for line, problem in (
        ("nsys-insight tpo x.sqlite", "no command tpo"),
        ("nsys-insight top x.sqlite --lmiit 3", "No such option"),
        ("nsys-insight ncu paln x.sqlite", "no command paln"),
        ("nsys-insight baseline save x.sqlite --nmae main", "No such option"),
        ("cat x && nsys-insight top x.sqlite | head; nsys-insight tops", "no command tops"),
    ):
        assert problem in " ".join(str(find_problem(root, words)) for words in split_commands(line))


def test_the_help_of_all_commands_is_one_text(monkeypatch, capsys):
    monkeypatch.setattr(registry.Commands, "list_commands", lambda *_: ["top", "baseline", "cache"])
    typer.main.get_command(app)(["help", "--full"], prog_name="nsys-insight", standalone_mode=False)
    usages = re.findall(r"Usage: (nsys-insight(?: [a-z]+)*)", capsys.readouterr().out)
    assert usages[1:] == [
        "nsys-insight top", "nsys-insight baseline", "nsys-insight baseline save",
        "nsys-insight baseline list", "nsys-insight baseline show", "nsys-insight baseline rm", "nsys-insight cache",
        "nsys-insight cache clear",
    ]  # fmt: skip
