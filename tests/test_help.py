"""The help: every command has examples that parse, and rich reads no text as markup."""

from __future__ import annotations

import re
import shlex

import pytest
from command_line import run

from nsys_insight.cli import registry
from nsys_insight.cli.commands import read_help_entries
from nsys_insight.cli.main import app
from nsys_insight.packs.library import built_in_packs

OWN_COMMANDS = {name: entry for name, entry in read_help_entries().items() if entry.group}
EXAMPLES = {
    **{name: entry.examples for name, entry in OWN_COMMANDS.items()},
    **{
        f"{name} {inner}": examples
        for name, entry in OWN_COMMANDS.items()
        for inner, examples in entry.subcommands.items()
    },
    **{pack.name: registry.list_examples(pack) for pack in built_in_packs().values()},
}
EXAMPLE_WORDS = {name: tuple(shlex.split(example) for example in examples) for name, examples in EXAMPLES.items()}
ONE_EXAMPLE_COMMANDS = {"demo", "baseline rm"}  # commands without options to show


def list_commands():
    """Give each command with its path, including those in groups."""
    lines = run("help", "--all", env={"COLUMNS": "200"}).stdout.splitlines()
    names = [line.split()[0] for line in lines if line.startswith("  ")]
    assert len(names) == len(set(names))
    assert {"launch-census", "experiment", "cache", "help"} <= set(names)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_help_completes_to_commands_only(shell, monkeypatch, capsys):
    monkeypatch.setenv("_NSYS_INSIGHT_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", "nsys-insight help to")
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "nsys-insight help to")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    with pytest.raises(SystemExit):
        app(prog_name="nsys-insight")
    assert capsys.readouterr().out.strip() in ("top", """_arguments '*: :(("top"))'""")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("idle", "--by", "length"), "nsys-insight gap-places, gap-sizes or host"),
        (("idle", "--list"), "nsys-insight gaps"),
        (("kernels", "--view=bound"), "nsys-insight launch-configs, classify-kernels, occupancy or roofline"),
        (("classify", "--kernels"), "nsys-insight classify-kernels"),
        (("report", "--template"), "nsys-insight brief TRACE"),
        (("check", "--markdown"), "nsys-insight check TRACE -o check.md"),
        (("gaps", "--by", "length"), "did you mean --group-by or --sort COLUMN? nsys-insight gaps --help"),
    ],
)
def test_the_error_for_an_option_that_became_a_report_names_the_report(words, hint):
    refused = run(*words)
    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        f"error: there is no option {words[1].partition('=')[0]}",
        f"hint: {hint}",
    ]


def test_the_short_help_has_examples_and_own_flags_only():
    lines = run("top", "--help", env={"COLUMNS": "80"}).stdout.splitlines()
    text = "\n".join(lines)
    assert len(lines) <= 50
    assert text.index("$ nsys-insight top trace.nsys-rep") < text.index("--group-by")
    assert "--nvtx   " not in text
    assert "nsys-insight help top --all" in text
    assert "nsys-insight help scope" in text


@pytest.mark.parametrize("name", ["top", "check", "diff", "gaps"])
def test_the_rest_of_the_help_is_one_command_away(name):
    short, full = (run(*words, env={"COLUMNS": "120"}).stdout for words in ((name, "--help"), ("help", name, "--all")))
    shared = run("help", "scope", env={"COLUMNS": "120"}).stdout
    for flag in ("--nvtx", "--from", "--output", "--timeout"):
        assert f"{flag} " in shared
        assert f"{flag} " in full
    assert set(re.findall(r"^│ (--[a-z-]+)", short, re.MULTILINE)) <= set(
        re.findall(r"^│ (--[a-z-]+)", full, re.MULTILINE)
    )
