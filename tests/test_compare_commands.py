"""`diff`, `check` and `baseline save` as users see them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import command_line
import pytest
from kept_connections import keep_connections
from opening import planted_path

import nsys_insight
from nsys_insight.compare import benchmark_formats
from nsys_insight.errors import UsageError

EAGER, GRAPH, CHURN = "decode_eager.sqlite", "decode_graph_node.sqlite", "churn.sqlite"
BOTH_SIDES_TWICE = ["--before", EAGER, "--before", EAGER, "--after", EAGER, "--after", EAGER]
SAMPLES = Path(__file__).parents[1] / "sample_traces"


@pytest.fixture
def run(monkeypatch):
    """Run a command in the folder of the samples."""
    monkeypatch.chdir(SAMPLES)
    monkeypatch.setenv("COLUMNS", "120")
    return command_line.run


@pytest.fixture(scope="module")
def copy_of_eager(tmp_path_factory):
    """Return a copy that is older than a test, which reads it twice."""
    return shutil.copy(SAMPLES / EAGER, tmp_path_factory.mktemp("copy"))


@pytest.mark.slow
def test_diff_decides_in_its_first_line(run):
    result = run("diff", EAGER, GRAPH)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"Improved: wall 2.680 ms → 0.602 ms per step (-77.5%), {EAGER} → {GRAPH}\n")
    assert "note: " in result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 120


def test_the_same_file_twice_is_one_line_and_a_note_for_programs(run):
    result = run("diff", EAGER, f"./{EAGER}")
    assert (result.returncode, result.stdout) == (0, f"Both sides are the same file: {EAGER}\n")
    result = run("diff", EAGER, EAGER, "-f", "csv")
    assert result.stdout.startswith("part,name,metric")
    assert "both sides are the same file" in result.stderr


def step_times(run, before_file, after_file, times):
    return run("diff", before_file, after_file, "--step-time", times)


def test_diff_decides_by_measured_times(run):
    """A graph makes the step 77% shorter under nsys; without it, 14% are left."""
    result = step_times(run, EAGER, GRAPH, "700us,600us")
    text = f"Improved: without nsys 700.0 µs → 600.0 µs per step (-14.3%), {EAGER} → {GRAPH}\n"
    assert result.stdout.startswith(text)
    notes = " ".join(result.stderr.split())
    assert "2.680 ms → 0.602 ms per step under nsys; 700.0 µs → 600.0 µs without (measured), which decides" in notes
    assert "wall time under nsys: " in notes
    assert "Only under nsys" not in notes
    slower = step_times(run, EAGER, GRAPH, "600us,610us")
    assert slower.stdout.startswith("No significant change: without nsys 600.0 µs → 610.0 µs per step (+1.7%)")
    assert "Only under nsys, a step got faster" in " ".join(slower.stderr.split())
    assert "less than 2% can be noise: measure with bench" in " ".join(slower.stderr.split())
    regressed = step_times(run, EAGER, GRAPH, "500us,600us")
    assert regressed.stdout.startswith("Regressed: without nsys 500.0 µs → 600.0 µs per step (+20.0%)")


def test_programs_read_measured_times_as_rows(run):
    result = run("diff", EAGER, GRAPH, "--step-time", "1.4ms,600us", "-f", "json", "-n", "0")
    rows = json.loads(result.stdout)["rows"]
    assert (rows[0]["part"], rows[0]["metric"], rows[0]["verdict"]) == ("decision", "without_nsys_ns", "accept")
    values = {row["metric"]: (row["before"], row["after"]) for row in rows if row["part"] == "run"}
    assert values["without_nsys_ns"] == (1_400_000, 600_000)
    assert values["tokens_per_s"] == pytest.approx((1e9 / 1_400_000, 1e9 / 600_000))
    assert values["wall_ns"][0] == pytest.approx(2_680_000, rel=0.01)


def test_python_takes_measured_times(run):
    with keep_connections():
        decision = nsys_insight.diff(EAGER, GRAPH, step_time_ns=("700us", 600_000)).dicts()[0]
    assert (decision["metric"], decision["before"], decision["after"]) == ("without_nsys_ns", 700_000, 600_000)
    with pytest.raises(UsageError, match="two times, before and after, not '515us'"):
        nsys_insight.diff(EAGER, GRAPH, step_time_ns="515us")


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("515us", "takes two times, before and after, not '515us'"),
        ("9ms,600us", "--step-time 9 ms is longer than a step of decode_eager.sqlite: 2.68 ms"),
        ("700us,20us", "--step-time 20 µs is shorter than the GPU's work in a step of decode_graph_node.sqlite"),
        ("0,600us", "takes times above 0"),
    ],
)
def test_a_measured_time_of_something_else_is_refused(run, times, message):
    result = step_times(run, EAGER, GRAPH, times)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())


def test_what_did_not_change_is_hidden_and_counted(run, copy_of_eager):
    result = run("diff", EAGER, copy_of_eager)
    (hidden,) = re.findall(r"note: (\d+) more rows, by metric, phase, family and kernel: --all", result.stderr)
    complete = run("diff", EAGER, copy_of_eager, "--all", "--limit", "1000")
    row_counts = [int(count) for count in re.findall(r"^(\d+) rows?$", complete.stdout, re.MULTILINE)]
    assert int(hidden) + 1 == sum(row_counts)
    assert "--all" not in complete.stderr
    assert "No significant change: wall" in result.stdout


def test_what_changed_fits_on_a_screen(run):
    """The decision, up to nine metrics, and notes."""
    result = run("diff", EAGER, GRAPH)
    assert len(result.stdout.splitlines()) <= 16
    assert len(result.stderr.splitlines()) <= 6
    assert "idle launch" in result.stdout
    assert "negligible" not in result.stdout


@pytest.mark.slow
def test_a_side_effect_of_an_improvement_is_a_change(run):
    rows = json.loads(run("diff", EAGER, GRAPH, "-f", "json", "-n", "0").stdout)["rows"]
    verdicts = {row["metric"]: row["verdict"] for row in rows if row["part"] == "run"}
    assert (verdicts["kernels"], verdicts["api_sync_ns"]) == ("changed", "changed")
    assert "regressed" not in verdicts.values()
    back = json.loads(run("diff", GRAPH, EAGER, "-f", "json", "-n", "0").stdout)["rows"]
    verdicts = {row["metric"]: row["verdict"] for row in back if row["part"] == "run"}
    assert (verdicts["launch_calls"], verdicts["kernels"]) == ("regressed", "improved")


@pytest.mark.slow
def test_diff_writes_the_page_of_two_traces(run, tmp_path):
    page = tmp_path / "changed.html"
    result = run("diff", EAGER, GRAPH, "-o", page)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert f"note: {page} written" in result.stderr
    assert run("diff", EAGER, GRAPH, "--steps", "3,4", "-o", page).returncode == 2


def test_diff_of_two_steps_of_a_trace_shows_what_makes_one_of_them_slow(run):
    result = run("diff", planted_path("straggling"), "--steps", "6,7", "-f", "json", "-n", "0")
    rows = {row["metric"]: row for row in json.loads(result.stdout)["rows"] if row["part"] == "run"}
    assert rows["wall_ns"]["delta"] == pytest.approx(500_000, rel=0.02)
    assert rows["gpu_idle_ns"]["delta"] == pytest.approx(500_000, rel=0.02)
    assert rows["kernels"]["delta"] == 0
    assert run("diff", EAGER, "--steps", "6").stderr.startswith("error: --steps takes two numbers, not '6'")


def test_diff_of_two_steps_names_the_nvtx_range_that_differs_most(run):
    result = run("diff", EAGER, "--steps", "16,17")
    flags = ("--by", "path", "--no-fold", "-f", "json")
    answers = (json.loads(run("nvtx", EAGER, *flags, "--step", step).stdout) for step in ("16", "17"))
    before, after = ({row["name"]: row["own_host_ns"] for row in answer["rows"]} for answer in answers)
    differences = {name: abs(before[name] - after[name]) for name in before if "/" in name}
    name = max(differences, key=differences.get).removeprefix("decode_step/")
    assert f"note: of the NVTX ranges in these steps, the host's own time differs most in {name}: " in result.stderr


def test_diff_states_one_time_of_a_step_and_says_what_a_latency_includes(run):
    stderr = run("diff", EAGER, GRAPH).stderr
    assert "decode 2" not in stderr
    assert "Faster: inter-token latency (pauses and warm-up included) 2.680 ms → 0.809 ms" in stderr


@pytest.mark.slow
def test_diff_takes_several_runs_of_each_side(run):
    result = run("diff", *BOTH_SIDES_TWICE, "-f", "json")
    answer = json.loads(result.stdout)
    assert answer["trace"] == {"before": [EAGER, EAGER], "after": [EAGER, EAGER], "unit": "step"}
    assert answer["rows"][0]["verdict"] == "indistinguishable"
    assert all(column["description"] for column in answer["columns"])


def test_several_names_after_one_flag_are_refused_with_the_new_form(run):
    result = run("diff", "--before", EAGER, EAGER, "--after", GRAPH, GRAPH, GRAPH)
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: --before and --after take one name each, and {EAGER} has no flag\n")
    assert "hint: repeat the flag, or quote a pattern: --before a1.sqlite --before a2.sqlite " in result.stderr
    assert run("diff", EAGER, GRAPH, GRAPH).stderr.startswith("error: two sides are compared, before and after\n")


@pytest.mark.slow
@pytest.mark.parametrize("sides", [(EAGER, GRAPH), ([EAGER, EAGER], [GRAPH])])
def test_python_compares_as_the_command_does(run, sides):
    answer = nsys_insight.diff(*sides)
    names = [name if isinstance(name, list) else [name] for name in sides]
    flags = [
        word
        for flag, side in zip(("--before", "--after"), names, strict=True)
        for name in side
        for word in (flag, name)
    ]
    expected = json.loads(run("diff", *flags, "-f", "json").stdout)
    assert answer.dicts() == expected["rows"]
    assert list(answer.notes) == expected["notes"]
    assert [(column.name, column.description) for column in answer.columns] == [
        (column["name"], column["description"]) for column in expected["columns"]
    ]


def test_python_compares_open_traces_in_their_scope_and_saved_runs(run, tmp_path):
    baseline_file = tmp_path / "baseline.json"
    assert run("baseline", "save", CHURN, "--step", 1, "-o", baseline_file).returncode == 0
    with (
        keep_connections(),
        nsys_insight.open(CHURN) as trace,
        trace.scope(step=1) as before,
        trace.scope(step=2) as after,
    ):
        decision = nsys_insight.diff(before, after).dicts()[0]
        assert nsys_insight.diff(str(baseline_file), after).dicts()[0] == decision
    rows = json.loads(run("diff", CHURN, "--steps", "1,2", "-f", "json").stdout)["rows"]
    assert decision == rows[0]
    broken_file = tmp_path / "broken.json"
    broken_file.write_text("{")
    with pytest.raises(UsageError, match="it is not JSON"):
        nsys_insight.diff(CHURN, broken_file)


@pytest.mark.slow
@pytest.mark.usefixtures("run")
def test_python_says_when_the_steps_do_different_work():
    first_note, *_ = nsys_insight.diff(EAGER, "churn.sqlite").notes
    assert first_note.startswith("the steps of the two do different work: no kernel is in both")


@pytest.mark.slow
def test_markdown_includes_the_notes(run, tmp_path):
    page = tmp_path / "page.md"
    assert run("diff", EAGER, GRAPH, "-o", page).returncode == 0
    text = page.read_text()
    assert text.startswith("## Improved: wall ")
    assert "\n- steps are " in text
    assert max(map(len, text.splitlines())) < 400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["diff"], 2),
        (["diff", EAGER], 2),
        (["diff", EAGER, "--after", GRAPH], 2),
        (["diff", EAGER, "nowhere.json"], 2),
        (["diff", EAGER, "nowhere.sqlite"], 3),
        (["diff", EAGER, GRAPH, "-o", "nowhere/page.md"], 2),
        (["diff", EAGER, GRAPH, "--step-range", "decode_stop"], 2),
        (["check", EAGER], 2),
        (["check", EAGER, "--max", "launches"], 2),
        (["check", EAGER, "--max", "lunches=1"], 2),
        (["check", EAGER, "--max", "wall=soon"], 2),
        (["check", EAGER, "--budget", "nowhere.toml"], 2),
        (["baseline", "save", EAGER, "-o", "nowhere/run.json"], 2),
    ],
)
def test_every_error_has_its_exit_code_and_a_hint(run, arguments, code):
    result = run(*arguments)
    assert result.returncode == code, result
    assert result.stderr.startswith("error: ")
    assert "hint: " in result.stderr


class TestCheck:
    @pytest.mark.slow
    def test_a_broken_budget_exits_1_and_says_where_to_look(self, run):
        limits = ["--max", "launches_per_token=15", "--max", "syncs_per_token=2", "--max", "mallocs_per_token=0"]
        result = run("check", EAGER, *limits, "--min", "gpu_busy_pct=90", "-f", "json")
        assert result.returncode == 1
        rows = {row["metric"]: row for row in json.loads(result.stdout)["rows"]}
        assert {name: row["verdict"] for name, row in rows.items()} == {
            "launch_calls": "broken", "sync_points": "ok", "mallocs": "ok", "gpu_busy_pct": "broken",
        }  # fmt: skip
        assert (rows["launch_calls"]["limit"], rows["launch_calls"]["actual"]) == (15, 196)
        assert rows["launch_calls"]["where"] == "nsys-insight launches"

    def test_a_budget_may_be_a_file(self, run, tmp_path):
        budget = tmp_path / "budget.toml"
        budget.write_text('[max]\nlaunches_per_token = 200\nwall = "3ms"\n[min]\ntokens_per_s = 300\n')
        assert run("check", EAGER, "--budget", budget).returncode == 0
        budget.write_text('[max]\nwall = "2ms"\n')
        assert run("check", EAGER, "--budget", budget).returncode == 1
        budget.write_text("[most]\nwall = 1\n")
        assert run("check", EAGER, "--budget", budget).returncode == 2

    @pytest.mark.slow
    def test_an_unknown_value_breaks_its_budget(self, run):
        result = run("check", "decode_graph_whole.sqlite", "--max", "kernels=1000", "-f", "json")
        assert result.returncode == 1
        assert json.loads(result.stdout)["rows"][0]["verdict"] == "unknown"

    @pytest.mark.slow
    def test_a_budget_per_step_counts_all_its_tokens(self, run):
        flags = ["--tokens-per-step", 4, "-f", "json"]
        result = run("check", EAGER, *flags, "--max", "launches_per_step=196", "--max", "launches_per_token=49")
        assert [row["actual"] for row in json.loads(result.stdout)["rows"]] == [196, 49]
        assert result.returncode == 0

    @pytest.mark.slow
    def test_a_run_is_checked_against_a_saved_baseline(self, run, tmp_path):
        baseline_file = tmp_path / "baseline.json"
        assert run("baseline", "save", GRAPH, "-o", baseline_file).returncode == 0
        assert run("check", GRAPH, "--baseline", baseline_file).returncode == 0
        worse = run("check", EAGER, "--baseline", baseline_file, "-f", "json")
        assert worse.returncode == 1
        broken = {row["metric"] for row in json.loads(worse.stdout)["rows"] if row["verdict"] == "broken"}
        assert broken == {"wall_ns", "launch_calls", "sync_points", "h2d_bytes", "decode_wall_ns"}
        assert run("diff", baseline_file, EAGER).stdout.startswith("Regressed: ")

    @pytest.mark.slow
    def test_a_saved_run_of_another_version_is_refused(self, run, tmp_path):
        baseline_file = tmp_path / "baseline.json"
        baseline_file.write_text('{"schema": "nsys-insight-run/99"}')
        assert run("check", EAGER, "--baseline", baseline_file).returncode == 2


class TestBenchmarks:
    def test_hyperfine_and_pytest_benchmark_are_in_seconds(self, tmp_path):
        hyperfine = {"results": [{"command": "./app", "times": [1.0, 2.0], "mean": 1.5}]}
        run = benchmark_formats.make_run_from_json(hyperfine, tmp_path)
        assert run.metrics["./app: time_ns"].values == (1e9, 2e9)
        pytest_benchmark = {"benchmarks": [{"name": "test_it", "stats": {"data": [0.5, 0.5, 0.25]}}]}
        assert benchmark_formats.make_run_from_json(pytest_benchmark, tmp_path).metrics["test_it: time_ns"].values == (
            5e8,
            5e8,
            2.5e8,
        )

    def test_a_list_of_runs_has_its_own_metrics(self, tmp_path):
        run = benchmark_formats.make_run_from_json(
            [{"tokens_per_s": 400, "note": "x"}, {"tokens_per_s": 402}], tmp_path
        )
        assert {name: samples.values for name, samples in run.metrics.items()} == {"tokens_per_s": (400, 402)}
        assert benchmark_formats.make_run_from_json([1, 2.5], tmp_path).metrics["value"].values == (1, 2.5)

    @pytest.mark.parametrize(
        "document", [{}, [], {"results": []}, ["a"], {"benchmarks": [{"name": "x", "stats": {}}]}, 7]
    )
    def test_other_documents_are_refused(self, tmp_path, document):
        with pytest.raises(UsageError):
            benchmark_formats.make_run_from_json(document, tmp_path)

    def test_two_files_get_the_same_decision_table(self, run, tmp_path):
        paths = [tmp_path / "before.json", tmp_path / "after.json"]
        for path, rate in zip(paths, (400, 300), strict=True):
            path.write_text(json.dumps([{"tokens_per_s": rate + off, "load_s": 5 + off / 100} for off in range(6)]))
        result = run("diff", *paths, "-f", "json")
        rows = json.loads(result.stdout)["rows"]
        assert [(row["part"], row["metric"], row["verdict"]) for row in rows[1:]] == [
            ("benchmark", "tokens_per_s", "regressed"),
            ("benchmark", "load_s", "noise"),
        ]
        assert run("diff", *paths).stdout.startswith("Regressed: tokens/s 402.5 → 302.5 (-24.8%)")

    def test_a_higher_rate_is_a_gain_and_an_unknown_direction_is_not_judged(self, run, tmp_path):
        paths = [tmp_path / "before.json", tmp_path / "after.json"]
        for metric, decision in (
            ("gflops", "Improved: "),
            ("step_ms", "Regressed: "),
            ("points", "Cannot be determined: "),
        ):
            for path, middle in zip(paths, (300, 321), strict=True):
                path.write_text(json.dumps([{metric: middle + off} for off in range(-3, 4)]))
            result = run("diff", *paths)
            assert result.stdout.startswith(decision)
            assert ("whether higher or lower points is better" in result.stderr) == (metric == "points")

    def test_the_user_sets_the_direction_and_files_may_be_logs(self, run, tmp_path):
        paths = [tmp_path / "before.txt", tmp_path / "after.log"]
        for path, middle in zip(paths, (300, 321), strict=True):
            path.write_text("".join(f"RESULT points {middle + off}\n" for off in range(-3, 4)))
        assert run("diff", *paths).stdout.startswith("Cannot be determined: points 300 → 321")
        assert run("diff", *paths, "--higher", "points").stdout.startswith("Improved: points 300 → 321")
        assert run("diff", *paths, "--lower", "points").stdout.startswith("Regressed: points 300 → 321")
        paths[0].write_text("nothing\n")
        assert run("diff", *paths).returncode == 2


def test_check_annotates_lines_of_the_budget_for_github(run, tmp_path):
    budget = tmp_path / "my,budget.toml"
    budget.write_text('[max]\nwall = "2ms"\nlaunches_per_token = 300\n[min]\ngpu_busy_pct = 90\n')
    result = run("check", EAGER, "--budget", budget, "-f", "github")
    assert result.returncode == 1
    first, second, notice = result.stdout.splitlines()
    place = f"file={budget.as_posix().replace(',', '%2C')}"
    assert first.startswith(f"::error {place},line=2,title=wall_ns (max)::wall is 2.68 ms; allowed: at most 2.00 ms; ")
    assert second.startswith(f"::error {place},line=5,title=gpu_busy_pct (min)::gpu busy is 13.7%25; ")
    assert notice == f"::notice title=nsys-insight check::1 of 3 limits met in {EAGER}"
    assert run("check", EAGER, "--max", "wall=1s", "-f", "github").stdout.count("::error") == 0
    assert "hint: it is a format of check" in run("top", EAGER, "-f", "github").stderr
    assert "github" in run("check", EAGER, "--max", "wall=1s", "-f", "githb").stderr.splitlines()[-1]


def test_two_steps_show_the_times_that_differ_most(run):
    """Step 0 of churn is no steady step: it takes 2.2 times as long, as launches take longer."""
    result = run("diff", CHURN, "--steps", "1,0")
    assert result.stdout.startswith("One step each: wall 215.7 µs → 479.8 µs per step (+122.4%), step 1 → step 0\n")
    assert "whole traces" not in result.stderr
    assert "steps are those of --steps" in result.stderr
    # It has no NVTX ranges.
    assert "differs most" not in result.stderr
    names = re.findall(r"^([a-z ]+?)  ", result.stdout, re.MULTILINE)
    assert names[1:4] == ["wall", "gpu idle", "idle launch"]
