"""The help: every command has examples that parse, and rich takes nothing that is written for markup."""

from __future__ import annotations

import shlex

import pytest

from nsys_insight.cli import registry
from nsys_insight.cli.commands import help_entries
from nsys_insight.packs.library import built_in

OURS = {name: one for name, one in help_entries().items() if one.group}
EXAMPLES = {
    **{name: one.examples for name, one in OURS.items()},
    **{f"{name} {inner}": given for name, one in OURS.items() for inner, given in one.inner.items()},
    **{pack.name: registry.examples_of(pack) for pack in built_in().values()},
}
WRITTEN = {name: tuple(shlex.split(each) for each in given) for name, given in EXAMPLES.items()}
WITHOUT_MORE = {"demo", "baseline rm"}  # there is nothing to say of them in two ways


def commands():
    """Give every command by its path, those in groups too."""
    names = [*OURS, *built_in()]
    for name in names:
        command = registry._command(name)
        yield name, command
        for inner, nested in getattr(command, "commands", {}).items():
            yield f"{name} {inner}", nested


COMMANDS = dict(commands())


def parsed(command, path, words):
    """Parse what is typed behind a command's name, as the command line does; give what nothing has taken."""
    context = command.make_context(path, list(words), resilient_parsing=False)
    inner = getattr(command, "commands", {})
    if inner and context.args + context._protected_args:
        name, *rest = [*context._protected_args, *context.args]
        return parsed(inner[name], f"{path} {name}", rest)
    return context


def test_every_command_has_two_examples_that_parse():
    assert WRITTEN.keys() == COMMANDS.keys()
    for path, given in WRITTEN.items():
        assert len(given) >= (1 if path in WITHOUT_MORE else 2), path
        for name, *words in given:
            assert path.split()[0] == name
            parsed(COMMANDS[name], name, words)


def test_an_example_that_does_not_parse_would_be_found():
    with pytest.raises(Exception, match="No such option"):
        parsed(COMMANDS["top"], "top", ["trace.nsys-rep", "--by-family"])


def texts_of(command):
    texts = [command.help, command.epilog, *(getattr(param, "help", "") for param in command.params)]
    return [text for text in texts if text]


def test_rich_takes_nothing_for_markup(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "4000")
    monkeypatch.setenv("TERMINAL_WIDTH", "4000")
    monkeypatch.setattr(registry, "escape_markup", lambda text: text)
    written = {path: texts_of(command) for path, command in commands()}
    for path, command in COMMANDS.items():
        command.get_help(command.make_context(path, [], resilient_parsing=True))
        shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
        for text in written[path]:
            for paragraph in text.split("\n\n"):
                assert " ".join(paragraph.split()) in shown, (path, paragraph)
    assert any("tables [max] and [min]" in text for text in written["check"])


def test_titles_of_the_users_own_packs_are_shown_as_they_are_written():
    assert registry._help_line("mine", "Kernels [max] by [bold]time[/bold]", "Your reports").short_help == (
        r"Kernels \[max] by \[bold]time\[/bold]"
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("classify --kernels x.sqlite --margin 10", "classify-kernels x.sqlite --margin 10"),
        ("per-token x.sqlite --by-phase", "per-phase x.sqlite"),
        ("fusion x.sqlite --explain-candidate 2 -n 1", "fusion-candidate x.sqlite --candidate 2 -n 1"),
        ("fusion --explain-candidate=2 x.sqlite", "fusion-candidate --candidate 2 x.sqlite"),
    ],
)
def test_a_flag_that_became_a_command_is_told(typed, meant, capsys):
    name, *words = registry.replace_old_flags(typed.split())
    assert [name, *words] == meant.split()
    assert f"is now {name}" in capsys.readouterr().err
    parsed(COMMANDS[name], name, words)
    assert registry.replace_old_flags(meant.split()) == meant.split()
    assert capsys.readouterr().err == ""
