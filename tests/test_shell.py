"""The shell: entries from a pipe, from a terminal, and what Tab suggests."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run
from opening import only_rules
from prompt_toolkit.document import Document

import nsys_insight
from nsys_insight.cli.commands.shell import split_entries
from nsys_insight.cli.prompt import Suggestions
from nsys_insight.cli.shell_entries import Shell, is_complete, list_dot_commands
from nsys_insight.errors import UsageError

REPOSITORY = Path(__file__).parents[1]
EAGER = REPOSITORY / "sample_traces" / "decode_eager.sqlite"


@pytest.fixture(scope="module")
def shell():
    with nsys_insight.open(EAGER) as trace:
        yield Shell(trace)


@pytest.fixture(scope="module")
def suggestions(shell):
    """Read the names of the trace once."""
    return Suggestions(shell)


def suggest(suggestions, text):
    return [completion.text for completion in suggestions.get_completions(Document(text), None)]


def test_entries_from_a_pipe():
    script = "CREATE TEMP TABLE a AS\n  SELECT 1 AS x;\n.format csv\nFROM a;\n.scope --nvtx prefill\n"
    script += "SELECT count(*) AS n FROM kernels"
    result = run("shell", EAGER, stdin=script)
    assert result.stdout == "x\n1\n--nvtx prefill\nn\n196\n"
    assert result.returncode == 0


def test_a_failed_entry_ends_the_pipe():
    result = run("shell", EAGER, stdin="FROM kernel;\nSELECT 1;")
    assert (result.returncode, result.stdout) == (1, "")


def test_a_report_is_run_as_on_the_command_line(capsys):
    with only_rules():
        result = run("shell", EAGER, stdin="top --limit 1\n.ru top --limit 1\n.tables gpu_op\ndiagnose\n")
    assert result.returncode == 0
    assert result.stdout.count("Kernels by GPU time") == 2
    assert "gpu_ops " in result.stdout
    assert "kernels  " not in result.stdout
    assert "launch-bound" in result.stdout


def test_run_alone_asks_for_a_report(shell):
    with pytest.raises(UsageError, match=r"\.run needs the name of a report"):
        shell.execute(".run")


def test_lines_become_entries():
    assert list(split_entries(["SELECT\n", " 1;\n", "\n", ".help\n", "top -n 3\n", "SELECT 2"])) == [
        "SELECT\n 1;\n",
        "\n.help\n",
        "top -n 3\n",
        "SELECT 2",
    ]
    assert [is_complete(text) for text in ("SELECT 1", "SELECT 1;", ".help", "SELECT 1\n", "")] == [
        False, True, True, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize("word", ["exit", "quit", "exit;", ".exit", ".quit"])
def test_a_word_ends_the_shell(shell, word):
    assert is_complete(word)
    with pytest.raises(EOFError):
        shell.execute(word)


@pytest.mark.parametrize(
    "name", [name for name in list_dot_commands() if name not in ("exit", "save", "format", "run", "explain")]
)
def test_every_command_prints_something(shell, capsys, name):
    shell.execute(f".{name}")
    assert capsys.readouterr().out


def test_a_report_is_run_explained_and_saved(shell, capsys, tmp_path):
    shell.execute(".run top --group-by family")
    assert "gemm" in capsys.readouterr().out
    shell.execute(f".save {tmp_path / 'top.csv'}")
    assert (tmp_path / "top.csv").read_text().startswith("name,calls")
    shell.execute(".explain top")
    assert "kernel_events" in capsys.readouterr().out


@pytest.mark.slow
def test_run_takes_the_flags_of_the_command(shell, capsys, tmp_path):
    shell.execute(".run top --step 3 --limit 1 --columns calls --format csv")
    assert capsys.readouterr().out == "calls\n20\n"
    shell.execute(f".save {tmp_path / 'all.csv'}")
    assert len((tmp_path / "all.csv").read_text().splitlines()) > 2
    shell.execute(f".run steps --limit 2 -o {tmp_path / 'steps.csv'}")
    assert len((tmp_path / "steps.csv").read_text().splitlines()) == 3
    shell.execute(".run classify --help")
    assert "--ranks" in capsys.readouterr().out
    shell.execute(".scope --step 3")
    assert capsys.readouterr().out == "--step 3\n"
    shell.execute(".run steps --format csv --columns step")
    assert capsys.readouterr().out == "step\n3\n"
    shell.execute(".scope none")


@pytest.mark.parametrize(
    "entry",
    [
        ".nope",
        ".run top --nope 1",
        ".run top --memory 1GB",
        ".run top --group-by x",
        ".scope --step x",
        ".run top --limit",
        ".format yaml",
        ".scope --device x",
    ],
)
def test_an_invalid_entry_is_a_usage_error(shell, entry):
    with pytest.raises(UsageError):
        shell.execute(entry)


@pytest.mark.slow
def test_tab_suggests_views_columns_functions_names_and_commands(suggestions):
    assert "kernels" in suggest(suggestions, "SELECT * FROM ker")
    assert suggest(suggestions, "SELECT duration_n") == ["duration_ns"]
    assert "family" in suggest(suggestions, "FROM kernel_names SELECT fam")
    assert "quantile_cont(" in suggest(suggestions, "SELECT quantile_co")
    assert "elementwise_kernel" in suggest(suggestions, "FROM kernels WHERE short_name = 'elementw")
    assert ".schema" in suggest(suggestions, ".sch")
    assert "--group-by" in suggest(suggestions, ".run top --gr")
    assert suggest(suggestions, ".schema memcp") == ["memcpys"]
    assert "--steady" in suggest(suggestions, ".scope --st")
    assert {"--steady", "--step-range"} <= {*suggest(suggestions, ".run per-token --st")}
    # Views after FROM, and the columns of a view after its alias.
    assert suggest(suggestions, "SELECT 1 FROM duration") == []
    assert suggest(suggestions, "SELECT k.duration_n FROM kernels AS k"[:19]) == []
    assert suggest(suggestions, "FROM kernels AS k SELECT k.duration_n") == ["duration_ns"]


def test_completions_have_a_description(suggestions):
    (completion,) = suggestions.get_completions(Document("FROM launches SELECT queue_n"), None)
    assert "Kernel start - call end" in completion.display_meta_text
