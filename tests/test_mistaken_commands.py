"""Commands that people type out of habit: the hint has what to type here."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run

TRACE = Path(__file__).parents[1] / "sample_traces" / "churn.sqlite"
NCU_PAGE = Path(__file__).parent / "data" / "ncu" / "churn.ncu.raw.csv"


@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        ("compare a b", "did you mean diff?"),
        ("profile -- ./program", "did you mean capture?"),
        ("timeline {trace}", "did you mean report?"),
        ("trace {trace}", "did you mean report?"),
        ("version", "did you mean --version?"),
        ("summary {trace}", "did you mean diagnose?"),
        ("top {trace} --json", "did you mean -f json?"),
        ("top {trace} --csv", "did you mean -f csv?"),
        ("starved {trace}", "did you mean idle?"),
        ("why {trace}", "did you mean diagnose?"),
        ("copies {trace} --top 3", "did you mean --limit N?"),
        ("syncs {trace} --by calls", "did you mean --group-by or --sort COLUMN?"),
        ("idle {trace} --order-by time", "did you mean --sort COLUMN?"),
        ("top {trace} --gpu 0", "did you mean --device N?"),
        ("sql {trace} --order-by calls", "nsys-insight sql --help"),
        ("sql {trace} --sort calls", "ORDER BY"),
        ("sql {trace} -f query.sql", "--file query.sql"),
        ("sql {trace} query.sql", "--file query.sql"),
        ("sql {trace} EXPLAIN+FROM+kernels", "--explain"),
        ("sql {trace} COPY+(SELECT+1)+TO+'rows.csv'", "-o FILE"),
    ],
)
def test_a_hint_has_the_words_to_type(words, suggested):
    result = run(*(word.replace("+", " ").format(trace=TRACE) for word in words.split()))
    assert (result.returncode, result.stdout) == (1 if "+" in words else 2, "")
    assert suggested in result.stderr.splitlines()[-1]


DURATIONS = "write a number and a unit: 250ns, 5us, 1.5ms or 2s"


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (("top", TRACE, "--limit", "-1"), "--limit is -1, which is less than 0", "--limit 0"),
        (
            ("top", TRACE, "--from", "90ms", "--to", "80ms"),
            "the window --from 90ms --to 80ms is empty",
            "--to must be after --from",
        ),
        (("gaps", TRACE, "--min-gap", "x"), "--min-gap takes a duration, not 'x'", DURATIONS),
        (
            ("copies", TRACE, "--group-by", "x"),
            "--group-by cannot be 'x'",
            "choose one of: call, size, stream, nvtx, caller, stack",
        ),
        (("top", TRACE, "--limit", "x"), "--limit takes a whole number, not 'x'", "nsys-insight top --help"),
        (
            ("classify", TRACE, "--least-pct", "x"),
            "--least-pct takes a number, not 'x'",
            "nsys-insight classify --help",
        ),
        (("fleet", TRACE, "--workers", "0"), "--workers takes 1 to 1024, not 0", "nsys-insight fleet --help"),
        (("schema", "kernels", "x"), "too many arguments: x", "nsys-insight schema --help"),
        (("sass",), "the argument FILE is missing", "nsys-insight sass --help"),
        (("experiment", "start"), "the option --bench is missing", "nsys-insight experiment start --help"),
        (("topp",), "there is no command 'topp'", "did you mean top? nsys-insight help --all lists them"),
        (
            ("run", "missing.sql", TRACE),
            "missing.sql cannot be read: No such file or directory",
            "nsys-insight packs lists all packs",
        ),
        (("nvtx", TRACE, "--instances"), "--instances needs a value", "nsys-insight nvtx --help"),
        (("report", TRACE, "--open=x"), "--open takes no value", "nsys-insight report --help"),
        (
            ("top", NCU_PAGE),
            f"{NCU_PAGE} is a page of Nsight Compute, not a trace of nsys",
            "nsys-insight ncu report FILE",
        ),
        (
            ("bench", "sleep 0.05", "--max-runs", "12"),
            "'sleep 0.05' --max-runs 12 cannot be run: No such file or directory",
            "options stand before the command: nsys-insight bench --max-runs 12 -- COMMAND",
        ),
    ],
)
def test_an_error_says_what_happened_in_the_words_that_were_typed(words, error, hint):
    assert run(*map(str, words)).stderr.splitlines() == [f"error: {error}", f"hint: {hint}"]


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        ("nvtx {} --instances decode_stp", "there is no NVTX range 'decode_stp'", "did you mean 'decode_step'?"),
        ("nvtx {} --instances nope", "there is no NVTX range 'nope'", "there are: 'decode_step', 'layer_#', 'prefill'"),
        (
            "top {} --nvtx decode_step --from 1ms --to 2ms",
            "no NVTX range 'decode_step' is in the rest of the scope",
            "leave out --from 1ms --to 2ms",
        ),
        ("loop-iteration {} --loop 9", "there is no loop '9'", "there are: '1', '2', '2.1'"),
    ],
)
def test_a_name_that_the_trace_does_not_have_is_refused_with_what_it_has(words, error, hint):
    result = run(*words.format(TRACE.with_name("decode_eager.sqlite")).split())
    assert (result.returncode, result.stderr.splitlines()) == (2, [f"error: {error}", f"hint: {hint}"])


def test_an_empty_answer_of_a_scope_does_not_state_what_the_trace_has():
    result = run("copies", str(TRACE), "--from", "1ms", "--to", "2ms")
    assert "Nothing in this scope (--from 1ms --to 2ms)" in result.stdout
    assert "means" not in result.stdout


def test_synonyms_name_commands_that_exist():
    from nsys_insight.cli import synonyms
    from nsys_insight.cli.commands.help import complete_commands

    assert set(synonyms.COMMANDS.values()) - {"--version", "help"} <= set(complete_commands(""))
    assert not set(synonyms.COMMANDS) & set(complete_commands(""))


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("FROM copies", "copies is a report, which reads api_calls, memcpys,"),
        ("FROM kernel", "did you mean kernels"),
        ("SELECT bytes FROM memcpys", "did you mean size_bytes?"),
    ],
)
def test_sql_with_a_name_of_a_report_or_a_part_of_a_column_has_the_name_to_type(query, hint):
    assert run("sql", str(TRACE), query).stderr.splitlines()[-1].startswith(f"hint: {hint}")


def test_help_installs_no_completion(tmp_path):
    result = run("--install-completion", "bash", "--help", env={"HOME": str(tmp_path)})
    assert result.stdout.startswith("Usage: nsys-insight COMMAND")
    assert not list(tmp_path.iterdir())


def test_a_misspelled_command_still_gets_the_nearest_name():
    assert "did you mean top?" in run("tpo").stderr


@pytest.mark.parametrize("code", ["NSI101", "nsi101"])
def test_help_of_a_rule_explains_the_rule(code):
    assert run("help", code).stdout == run("rule", "NSI101").stdout != ""
