"""The shell: entries from a pipe, from a terminal, and what Tab suggests."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run
from prompt_toolkit.document import Document

import nsys_insight
from nsys_insight.cli.commands.shell import entries
from nsys_insight.cli.prompt import Suggestions
from nsys_insight.cli.shell_entries import Shell, commands, is_complete
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


def suggested(suggestions, text):
    return [found.text for found in suggestions.get_completions(Document(text), None)]


def test_entries_from_a_pipe():
    script = "CREATE TEMP TABLE a AS\n  SELECT 1 AS x;\n.format csv\nFROM a;\n.scope --nvtx prefill\n"
    script += "SELECT count(*) AS n FROM kernels"
    result = run("shell", EAGER, stdin=script)
    assert result.stdout == "x\n1\n--nvtx prefill\nn\n196\n"
    assert result.returncode == 0


def test_a_failed_entry_of_a_pipe_ends_it():
    result = run("shell", EAGER, stdin="FROM kernel;\nSELECT 1;")
    assert (result.returncode, result.stdout) == (1, "")


def test_lines_become_entries():
    assert list(entries(["SELECT\n", " 1;\n", "\n", ".help\n", "SELECT 2"])) == [
        "SELECT\n 1;\n",
        "\n.help\n",
        "SELECT 2",
    ]
    assert [is_complete(text) for text in ("SELECT 1", "SELECT 1;", ".help", "SELECT 1\n", "")] == [
        False, True, True, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize("word", ["exit", "quit", "exit;", ".exit", ".quit"])
def test_a_word_leaves(shell, word):
    assert is_complete(word)
    with pytest.raises(EOFError):
        shell.execute(word)


@pytest.mark.parametrize(
    "name", [name for name in commands() if name not in ("exit", "save", "format", "run", "explain")]
)
def test_every_command_says_something(shell, capsys, name):
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
def test_run_takes_what_the_command_takes(shell, capsys, tmp_path):
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
def test_what_makes_no_sense_is_a_usage_error(shell, entry):
    with pytest.raises(UsageError):
        shell.execute(entry)


@pytest.mark.slow
def test_tab_suggests_views_columns_functions_names_and_commands(suggestions):
    assert "kernels" in suggested(suggestions, "SELECT * FROM ker")
    assert suggested(suggestions, "SELECT duration_n") == ["duration_ns"]
    assert "family" in suggested(suggestions, "FROM kernel_names SELECT fam")
    assert "quantile_cont(" in suggested(suggestions, "SELECT quantile_co")
    assert "elementwise_kernel" in suggested(suggestions, "FROM kernels WHERE short_name = 'elementw")
    assert ".schema" in suggested(suggestions, ".sch")
    assert "--group-by" in suggested(suggestions, ".run top --gr")
    assert suggested(suggestions, ".schema memcp") == ["memcpys"]
    assert "--steady" in suggested(suggestions, ".scope --st")
    assert {"--steady", "--step-range"} <= {*suggested(suggestions, ".run per-token --st")}
    # After FROM a view, and of a view that a name stands for its columns.
    assert suggested(suggestions, "SELECT 1 FROM duration") == []
    assert suggested(suggestions, "SELECT k.duration_n FROM kernels AS k"[:19]) == []
    assert suggested(suggestions, "FROM kernels AS k SELECT k.duration_n") == ["duration_ns"]


def test_completions_carry_what_they_mean(suggestions):
    (found,) = suggestions.get_completions(Document("FROM launches SELECT queue_n"), None)
    assert "Kernel start - call end" in found.display_meta_text
