"""The command line as users see it: exit code, stdout and stderr.

CI runs the tests that are marked `wheel` on the installed wheel, outside the checkout. NSYS_INSIGHT_COMMAND is then the
console script of the wheel.
"""

import csv
import io
import json
import os
import shutil
import sqlite3
import subprocess

import command_line
import pytest
from command_line import PROCESS, REPOSITORY

from nsys_insight import paths

REPORTS = ["info", "top", "launch-configs", "api", "launches", "mallocs", "copies", "syncs", "gaps", "nvtx", "streams"]
REPORTS += ["gap-sizes", "per-token", "classify-kernels", "occupancy", "peaks"]


@pytest.fixture(scope="module")
def demo_trace():
    """Return the demo trace of the installed package or of the checkout."""
    return paths.demo_trace()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make an empty working folder with a separate cache."""
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("NSYS_INSIGHT_TRACE", "COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def run(*arguments, **environment):
    return command_line.run(*arguments, env=environment)


@pytest.mark.wheel
def test_without_arguments_it_shows_the_reports(folder):
    result = run()
    assert result.returncode == 0
    assert all(f"  {report} " in result.stdout for report in ("diagnose", "top", "per-token", "sql"))
    assert all(report in run("help", "--all").stdout for report in REPORTS)


@pytest.mark.slow
def test_without_arguments_it_diagnoses_the_only_trace_of_the_folder(folder, demo_trace):
    shutil.copy(demo_trace, folder / "one.sqlite")
    result = run(COLUMNS="80")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("one.sqlite: launch-bound; 2.68 ms per step")
    assert "nsys-insight diagnose" in result.stdout
    assert len(result.stdout.splitlines()) <= 9
    shutil.copy(demo_trace, folder / "two.sqlite")
    assert run().stdout.startswith("one.sqlite: launch-bound")  # the one used last
    message_lines = run(NSYS_INSIGHT_CACHE_DIR=str(folder / "new")).stdout.splitlines()
    assert message_lines[:2] == [
        "2 traces are in this folder: one.sqlite, two.sqlite", "To diagnose one: nsys-insight diagnose one.sqlite",
    ]  # fmt: skip
    broken = folder / "broken.sqlite"
    broken.write_bytes(b"nothing")
    result = run(NSYS_INSIGHT_TRACE=str(broken))
    assert (result.returncode, result.stderr.startswith(f"note: {broken} is ")) == (0, True)
    assert "diagnose" in result.stdout


@pytest.mark.slow
@pytest.mark.wheel
def test_a_diagnosis_is_text_or_rows(folder, demo_trace):
    shutil.copy(demo_trace, folder / "mine.sqlite")  # the path of the trace stands in the text
    people = run("diagnose", "mine.sqlite", COLUMNS="80")
    assert (people.returncode, people.stderr) == (0, "")
    assert max(map(len, people.stdout.splitlines())) <= 80
    assert len(people.stdout.splitlines()) <= 24
    document = json.loads(run("diagnose", demo_trace, "--format", "json").stdout)
    assert (document["schema"], document["report"]) == ("nsys-insight/1", "diagnose")
    assert document["summary"]["verdict"] == "launch-bound"
    assert [row["finding"] for row in document["rows"]] == ["launch-bound", "graph-candidate", "fusion"]
    assert run("diagnose", demo_trace, "-o", "diagnosis.md").stdout == ""
    assert (folder / "diagnosis.md").read_text(encoding="utf-8").startswith("## decode\\_eager.sqlite: launch-bound")
    short = run("diagnose", demo_trace, "--limit", "1").stdout
    assert "1. CRITICAL" in short
    assert "1 of 2 findings" in short
    assert run("diagnose", demo_trace, "--step-method", "odd").returncode == 2
    assert run("diagnose", folder / "none.sqlite").returncode == 3


@pytest.mark.wheel
def test_help_of_a_report_explains_its_columns(folder):
    result = run("help", "top", "--all", COLUMNS="200")
    assert result.returncode == 0
    assert "kernel_time_pct: Share of all kernel time in scope" in result.stdout
    assert "--group-by" in result.stdout
    assert "--nvtx" in result.stdout


def report_arguments(report, trace, *flags):
    """Return the words of a command that runs a report on the demo trace."""
    return [report, str(trace), *(["--tokens", "32"] if report == "per-token" else []), *flags]


@pytest.fixture(scope="module")
def answers(demo_trace):
    """Return the output of all reports at 80 columns and as JSON, by report and flags."""
    commands = {
        (report, *flags): report_arguments(report, demo_trace, *flags)
        for report in REPORTS
        for flags in ((), ("--format", "json"))
    }
    return {key: run(*command, COLUMNS="80") for key, command in commands.items()}


@pytest.mark.wheel
@pytest.mark.parametrize("report", REPORTS)
def test_every_report_answers_on_the_demo_trace_and_fits_a_narrow_terminal(answers, report):
    result = answers[report,]
    assert result.returncode == 0, result.stderr
    assert 0 < max(map(len, result.stdout.splitlines())) <= 80
    assert "\x1b" not in result.stdout + result.stderr
    assert all(line.startswith("note: ") for line in result.stderr.splitlines())


@pytest.mark.wheel
@pytest.mark.parametrize("report", REPORTS)
def test_json_is_one_object_with_units_and_meanings(answers, demo_trace, report):
    result = answers[report, "--format", "json"]
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["schema"] == "nsys-insight/1"
    assert answer["report"] == report
    assert answer["trace"]["file"] == demo_trace.name
    names = [column["name"] for column in answer["columns"]]
    assert all(column["description"] for column in answer["columns"])
    # This program allocates nothing after its warm-up; everything else it does.
    assert bool(answer["rows"]) == (report != "mallocs")
    assert all(list(row) == names for row in answer["rows"])


@pytest.mark.slow
def test_a_separate_process_prints_the_same_answer(folder, demo_trace, answers):
    """Each process chooses colors, widths and notes again."""
    for report, *flags in (("gaps",), ("per-token", "--format", "json")):
        result = subprocess.run(
            [*PROCESS, *report_arguments(report, demo_trace, *flags)], env={**os.environ, "COLUMNS": "80"},
            capture_output=True, text=True, check=False, cwd=REPOSITORY,
        )  # fmt: skip
        expected = answers[report, *flags]
        assert (result.returncode, result.stdout, result.stderr) == (
            expected.returncode,
            expected.stdout,
            expected.stderr,
        )


def test_csv_has_all_rows_raw_numbers_and_full_names(folder, demo_trace):
    rows = list(csv.DictReader(io.StringIO(run("top", demo_trace, "--format", "csv").stdout)))
    with sqlite3.connect(f"file:{demo_trace}?immutable=1", uri=True) as database:
        kernels = database.execute('SELECT count(*), sum("end" - start) FROM CUPTI_ACTIVITY_KIND_KERNEL').fetchone()
    assert (sum(int(row["calls"]) for row in rows), sum(int(row["total_ns"]) for row in rows)) == kernels
    assert any(row["name"].startswith("void at::native::") for row in rows)


@pytest.mark.slow
def test_a_limited_table_has_a_footer_and_names_the_flag(folder, demo_trace):
    result = run("top", demo_trace, "--limit", "3")
    assert result.stdout.rstrip().endswith("3 of 30 rows")
    assert "--limit 0 shows all" in result.stderr
    full_table = run("top", demo_trace, "--limit", "0")
    assert full_table.stdout.rstrip().endswith("30 rows")


@pytest.mark.sweep  # 80 columns are tested above
@pytest.mark.parametrize("width", [120, 200])
def test_a_table_fits_the_terminal(demo_trace, width):
    answers = [run(*report_arguments(report, demo_trace), COLUMNS=str(width)) for report in REPORTS]
    widths = [max(map(len, result.stdout.splitlines())) for result in answers]
    assert all(0 < table_width <= width for table_width in widths), widths


@pytest.mark.slow
@pytest.mark.wheel
def test_output_goes_to_a_file_in_the_format_of_its_suffix(folder, demo_trace):
    for name in ("top.csv", "top.json", "top.md", "top.parquet", "top.jsonl", "top.txt"):
        result = run("top", demo_trace, "-o", name)
        assert (result.returncode, result.stdout) == (0, ""), result.stderr
        assert (folder / name).stat().st_size > 1000
    result = run("top", demo_trace, "-o", "top.docx")
    assert result.returncode == 2
    assert "hint: " in result.stderr


def test_explain_prints_sql_that_runs_unchanged(folder, demo_trace):
    explained = run("top", "--explain", "--group-by", "family")
    assert explained.returncode == 0
    assert "   reads " in explained.stdout
    by_hand = run("sql", demo_trace, explained.stdout, "--format", "csv")
    assert by_hand.stdout == run("top", demo_trace, "--group-by", "family", "--format", "csv").stdout


@pytest.mark.slow
def test_the_trace_may_be_left_out(folder, demo_trace):
    nothing = run("top")
    assert nothing.returncode == 2
    assert "hint: " in nothing.stderr

    shutil.copy(demo_trace, folder / "one.sqlite")
    only = run("top", "-n", "1")
    assert only.returncode == 0
    assert "note: using one.sqlite" in only.stderr

    shutil.copy(demo_trace, folder / "two.sqlite")
    assert "note: using one.sqlite (the trace used last in this folder)" in run("top", "-n", "1").stderr
    assert "NSYS_INSIGHT_TRACE" in run("top", "-n", "1", NSYS_INSIGHT_TRACE="two.sqlite").stderr


def test_two_traces_and_no_choice_is_a_usage_error_that_names_both(folder, demo_trace):
    for name in ("one.sqlite", "two.sqlite"):
        shutil.copy(demo_trace, folder / name)
    result = run("top")
    assert result.returncode == 2
    assert "one.sqlite" in result.stderr
    assert "two.sqlite" in result.stderr


BAD_INPUT = {
    "missing.sqlite": None,
    "empty.sqlite": b"",
    "text.sqlite": b"hello, this is no database\n",
    "pointer.nsys-rep": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "quote'; DROP TABLE x; --.sqlite": b"",
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_one_sentence_a_hint_and_exit_code_3(folder, name):
    if BAD_INPUT[name] is not None:
        (folder / name).write_bytes(BAD_INPUT[name])
    check_error(run("top", name), 3)


def test_a_truncated_export_is_refused(folder, demo_trace):
    (folder / "half.sqlite").write_bytes(demo_trace.read_bytes()[:500_000])
    check_error(run("top", "half.sqlite"), 3)


def test_another_database_is_refused(folder):
    with sqlite3.connect(folder / "other.sqlite") as database:
        database.execute("CREATE TABLE people (name TEXT)")
    check_error(run("top", "other.sqlite"), 3)


def test_a_folder_without_a_trace_is_refused(folder):
    (folder / "sub").mkdir()
    check_error(run("top", "sub"), 2)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_read_permission_is_refused(folder, demo_trace):
    shutil.copy(demo_trace, folder / "secret.sqlite")
    (folder / "secret.sqlite").chmod(0)
    check_error(run("top", "secret.sqlite"), 3)


@pytest.mark.parametrize(
    "name", ["it's.sqlite", 'a "quoted" name.sqlite', "semi;colon.sqlite", "100%#?.sqlite", "ünï ✓.sqlite"]
)
def test_any_file_name_works(folder, demo_trace, name):
    shutil.copy(demo_trace, folder / name)
    result = run("top", name, "-n", "1")
    assert result.returncode == 0, result.stderr
    assert [path.name for path in folder.iterdir()] == [name]


@pytest.mark.slow
def test_the_folder_and_the_bytes_of_the_trace_do_not_change(folder, demo_trace):
    trace = folder / "trace.sqlite"
    shutil.copy(demo_trace, trace)
    before = (trace.read_bytes(), trace.stat().st_mtime_ns)
    for report in ("top", "gaps", "per-token"):
        assert run(*report_arguments(report, trace, "--cache")).returncode == 0
    assert (trace.read_bytes(), trace.stat().st_mtime_ns) == before
    assert [path.name for path in folder.iterdir()] == ["trace.sqlite"]


@pytest.mark.slow
@pytest.mark.wheel
def test_two_processes_on_a_cold_cache_both_answer(folder, demo_trace):
    arguments = [*PROCESS, "top", str(demo_trace), "--cache", "--format", "csv"]
    processes = [
        subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    answers = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], answers
    assert answers[0][0] == answers[1][0] == run("top", demo_trace, "--no-cache", "--format", "csv").stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["tpo"], 2),
        (["top", "--nope"], 2),
        (["top", "TRACE", "--group-by", "colour"], 2),
        (["top", "TRACE", "--format", "yaml"], 2),
        (["top", "TRACE", "--nvtx", "decode_stp"], 2),
        (["top", "TRACE", "--from", "soon"], 2),
        (["top", "TRACE", "--from", "2s", "--to", "1s"], 2),
        (["top", "TRACE", "--memory", "lots"], 2),
        (["per-token", "TRACE", "--tokens", "0"], 2),
        (["steps", "TRACE", "--step-range", "decode_stop"], 2),
        (["top", "TRACE", "--step-method", "nvtx"], 2),
        (["sql", "TRACE"], 2),
        (["sql", "TRACE", "SELECT nonsense FROM kernels"], 1),
        (["schema", "kernel"], 2),
    ],
)
def test_every_error_has_its_exit_code(folder, demo_trace, arguments, code):
    result = run(*[str(demo_trace) if argument == "TRACE" else argument for argument in arguments])
    assert result.returncode == code
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr


def test_an_empty_answer_is_a_success_that_says_what_it_means(folder, demo_trace):
    result = run("top", demo_trace, "--to", "1us")
    assert result.returncode == 0
    assert "Nothing in this scope (--to 1" in result.stdout


@pytest.mark.parametrize(
    ("flag", "there_is"), [("device", "there is 0"), ("stream", "there is 7"), ("process", "there is ")]
)
def test_a_scope_that_names_nothing_is_an_error_that_says_what_there_is(folder, demo_trace, flag, there_is):
    result = run("top", demo_trace, f"--{flag}", "99")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: there is no {flag} 99 in the trace\nhint: {there_is}")
    number = result.stderr.split()[-1]
    assert run("top", demo_trace, f"--{flag}", number).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("command_template", ["sql {} 'SELECT * FROM kernels' --format csv", "api {} --limit 0"])
def test_a_closed_pipe_is_not_an_error(demo_trace, command_template):
    command = f"{' '.join(PROCESS)} {command_template.format(demo_trace)} | (read -r line; echo $line)"
    line = subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", command],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert line.stdout
    assert line.returncode == 0
    assert "Traceback" not in line.stderr


@pytest.mark.slow
@pytest.mark.wheel
def test_the_demo_runs(folder):
    result = run("demo")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("$ nsys-insight ") == 7
    assert result.stdout.startswith("$ nsys-insight diagnose decode_eager.sqlite")


@pytest.mark.slow
@pytest.mark.wheel
def test_a_report_is_a_self_contained_page(folder, demo_trace):
    result = run("report", demo_trace, "-o", "report.html")
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert all(part in page for part in ("<style>:root", '<script>"use strict"', 'id="diagnosis"', 'class="timeline"'))


def test_help_of_a_command_has_text_in_brackets_and_choices(folder):
    help_text = run("help", "check", COLUMNS="100").stdout
    assert help_text == run("check", "--help", COLUMNS="100").stdout
    assert "[max] and [min]" in " ".join(run("help", "check", "--all", COLUMNS="100").stdout.split())
    help_text = " ".join(run("top", "--help", COLUMNS="200").stdout.replace("│", " ").split())
    assert "one of: full, short, mangled, family" in help_text
    assert "9223372036854775807" not in help_text
    assert run("help").stdout == run("--help").stdout
    assert run("help", "nothing").returncode == 2


def test_f_is_short_for_format_in_all_commands(folder, demo_trace):
    arguments = ("sql", demo_trace, "SELECT 1 AS one")
    assert run(*arguments, "-f", "csv").stdout.split() == ["one", "1"]
    failed = run(*arguments, "-f", "query.sql")
    assert failed.returncode == 2
    assert "--file query.sql" in failed.stderr


@pytest.mark.wheel
def test_the_version_is_printed(folder):
    assert run("--version").stdout.startswith("nsys-insight ")


def check_error(result, code):
    assert result.returncode == code, result
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[0].startswith("error: ")
    assert lines[-1].startswith("hint: ")
    assert len(lines) == 2


@pytest.mark.slow
def test_classify_covers_the_steady_state_or_kernels(folder, demo_trace):
    result = run("classify", demo_trace, "--format", "json")
    assert result.returncode == 0
    answer = json.loads(result.stdout)
    assert answer["report"] == "classify"
    assert (answer["rows"][0]["part"], answer["rows"][0]["verdict"]) == ("wall", "launch-bound")
    kernels = run("classify-kernels", demo_trace, "--format", "json")
    assert kernels.returncode == 0
    assert json.loads(kernels.stdout)["report"] == "classify-kernels"


def test_classify_refuses_a_flag_of_the_other_report(folder, demo_trace):
    check_error(run("classify", demo_trace, "--margin", "10"), 2)
    check_error(run("classify-kernels", demo_trace, "--kernel-gap", "1us"), 2)
