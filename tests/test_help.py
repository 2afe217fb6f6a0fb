"""The help: every command has examples that parse, and rich reads no text as markup."""

from __future__ import annotations

import shlex

import pytest

from nsys_insight.cli import registry
from nsys_insight.cli.commands import read_help_entries
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
    names = [*OWN_COMMANDS, *built_in_packs()]
    for name in names:
        command = registry._make_command(name)
        yield name, command
        for inner, nested in getattr(command, "commands", {}).items():
            yield f"{name} {inner}", nested


COMMANDS = dict(list_commands())


def parse(command, path, words):
    """Parse the words after a command's name like the command line does, and return the context."""
    context = command.make_context(path, list(words), resilient_parsing=False)
    inner = getattr(command, "commands", {})
    if inner and context.args + context._protected_args:
        name, *inner_words = [*context._protected_args, *context.args]
        return parse(inner[name], f"{path} {name}", inner_words)
    return context


def test_every_command_has_two_examples_that_parse():
    assert EXAMPLE_WORDS.keys() == COMMANDS.keys()
    for path, examples in EXAMPLE_WORDS.items():
        assert len(examples) >= (1 if path in ONE_EXAMPLE_COMMANDS else 2), path
        for name, *words in examples:
            assert path.split()[0] == name
            parse(COMMANDS[name], name, words)


def test_an_example_that_does_not_parse_would_be_found():
    with pytest.raises(Exception, match="No such option"):
        parse(COMMANDS["top"], "top", ["trace.nsys-rep", "--by-family"])


def list_texts(command):
    texts = [command.help, command.epilog, *(getattr(param, "help", "") for param in command.params)]
    return [text for text in texts if text]


def test_rich_reads_no_text_as_markup(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "4000")
    monkeypatch.setenv("TERMINAL_WIDTH", "4000")
    monkeypatch.setattr(registry, "escape_markup", lambda text: text)
    texts_by_command = {path: list_texts(command) for path, command in list_commands()}
    for path, command in COMMANDS.items():
        command.get_help(command.make_context(path, [], resilient_parsing=True))
        help_text = " ".join(capsys.readouterr().out.replace("│", " ").split())
        for text in texts_by_command[path]:
            for paragraph in text.split("\n\n"):
                assert " ".join(paragraph.split()) in help_text, (path, paragraph)
    assert any("tables [max] and [min]" in text for text in texts_by_command["check"])


def test_titles_of_user_packs_are_shown_unchanged():
    assert registry._make_help_line("mine", "Kernels [max] by [bold]time[/bold]", "Your reports").short_help == (
        r"Kernels \[max] by \[bold]time\[/bold]"
    )


@pytest.mark.parametrize(
    ("old_arguments", "new_arguments"),
    [
        ("classify --kernels x.sqlite --margin 10", "classify-kernels x.sqlite --margin 10"),
        ("per-token x.sqlite --by-phase", "per-phase x.sqlite"),
        ("fusion x.sqlite --explain-candidate 2 -n 1", "fusion-candidate x.sqlite --candidate 2 -n 1"),
        ("fusion --explain-candidate=2 x.sqlite", "fusion-candidate --candidate 2 x.sqlite"),
    ],
)
def test_a_flag_that_became_a_command_is_reported(old_arguments, new_arguments, capsys):
    name, *words = registry.replace_old_flags(old_arguments.split())
    assert [name, *words] == new_arguments.split()
    assert f"is now {name}" in capsys.readouterr().err
    parse(COMMANDS[name], name, words)
    assert registry.replace_old_flags(new_arguments.split()) == new_arguments.split()
    assert capsys.readouterr().err == ""
