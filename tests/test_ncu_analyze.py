"""`ncu analyze` with a fake ncu that prints recorded output: the ncu commands, and the files that it writes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from nsys_insight.cli.main import _run
from nsys_insight.errors import Exit, UsageError
from nsys_insight.ingest.ncu import store
from nsys_insight.ingest.ncu.pages import Launch, Metric
from nsys_insight.ncu import survey
from nsys_insight.ncu.data import NcuData

DATA = Path(__file__).parent / "data"
FAKE = """#!{python}
import json, pathlib, sys
words = sys.argv[1:]
with open("{log}", "a") as log: log.write(json.dumps(words) + "\\n")
if "--import" in words:
    page = words[words.index("--page") + 1]
    file = {{"raw": "ncu/tune.raw.csv", "details": "ncu/tune.details.csv", "source": "sass/tune.source.csv"}}[page]
    sys.stdout.write(pathlib.Path("{data}", file).read_text())
else:
    report = words[words.index("--export") + 1]
    pathlib.Path(report + ".ncu-rep").write_bytes(b"NVR\\0" + bytes(4))
    print("==PROF== Report: " + report)
"""


@pytest.fixture
def run_analyze(tmp_path, monkeypatch, capsys):
    """Run `ncu analyze` with the fake ncu. Return the exit code, stdout, stderr, and the calls of ncu."""
    log = tmp_path / "log"
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "ncu"
    fake.write_text(FAKE.format(python=sys.executable, log=log, data=DATA))
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.delenv("NSYS_INSIGHT_NCU", raising=False)
    monkeypatch.chdir(tmp_path)

    def run_command(*words):
        monkeypatch.setattr("sys.argv", ["nsys-insight", "ncu", "analyze", *map(str, words)])
        code = _run()
        calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return code, *capsys.readouterr(), calls

    return run_command


@pytest.mark.slow
def test_one_step_from_the_program_to_the_files(run_analyze, tmp_path):
    code, out, err, calls = run_analyze("--export", "mine", "--top", 2, "--", "./tune", "profile", "--fast")
    assert not code
    first, second = (call for call in calls if "--import" not in call)
    assert first[-3:] == second[-3:] == ["./tune", "profile", "--fast"]
    assert first[first.index("--metrics") + 1] == "gpu__time_duration.sum"
    # The two kernels with the most time, and all launches between them in the second half.
    assert second[second.index("--kernel-name") + 1] == "regex:^(gemm_0_rows|spill_0_forced)$"
    assert (second[second.index("--launch-skip") + 1], second[second.index("--launch-count") + 1]) == ("0", "2")
    assert second[second.index("--set") + 1] == "full"
    assert {file.name for file in tmp_path.iterdir()} >= {
        "mine.ncu-rep", "mine.csv", "mine_analysis.md", "mine_summary.txt",
    }  # fmt: skip
    analysis, summary = ((tmp_path / f"mine_{name}").read_text() for name in ("analysis.md", "summary.txt"))
    assert (tmp_path / "mine.csv").read_text() == (DATA / "ncu" / "tune.raw.csv").read_text()
    assert "| machine code | shared_load 47%" in analysis  # from ncu's source page
    assert "transpose_1_shared: Pad or swizzle rows of shared memory; saves 16 to 73%" in summary
    assert "What to do first" in out
    assert "written: mine.ncu-rep, mine.csv, mine_analysis.md, mine_summary.txt" in err


@pytest.mark.slow
def test_collectives_are_excluded_by_default_and_profiled_by_application_replay_on_request(run_analyze):
    _, _, err, calls = run_analyze("--", "./tune")
    pattern = calls[0][calls[0].index("--kernel-name") + 1].removeprefix("regex:")
    for name in ("ncclDevKernel_AllReduce_Sum", "void cross_device_reduce_1stage", "multimem_all_reduce_kernel"):
        assert not re.search(pattern, name)
    assert re.search(pattern, "reduce_kernel")
    assert "wait for their peers forever" in err
    _, _, err, calls = run_analyze("--collectives", "--force", "--", "./tune")
    second_calls = [call for call in calls[len(calls) // 2 :] if "--import" not in call]
    assert "--kernel-name" not in second_calls[0]
    assert second_calls[1][second_calls[1].index("--replay-mode") + 1] == "application"
    assert "must do the same each time" in err


@pytest.mark.slow
def test_an_unknown_kernel_is_an_error_that_lists_the_known_ones(run_analyze):
    code, _, err, _ = run_analyze("--kernel", "nowhere", "--", "./tune")
    assert code == Exit.USAGE
    assert "there are: gemm_0_rows" in err


def test_without_ncu_the_error_has_a_hint(run_analyze, monkeypatch):
    monkeypatch.setenv("NSYS_INSIGHT_NCU", "/nowhere/ncu")
    code, _, err, _ = run_analyze("--", "./tune")
    assert code == Exit.TOOL
    assert "hint:" in err


def open_survey(tmp_path, *launches):
    """Write and open a survey of launches: name, grid and duration, in this order."""
    path = store.write(
        [
            Launch("s", number, process, "app", f"{name}(int)", 1, 7, 0, "9.0", (grid, 1, 1), (32, 1, 1),
                   {"gpu__time_duration.sum": Metric(duration_ns, "ns")})
            for number, (name, grid, duration_ns, process) in enumerate((*launch, 1)[:4] for launch in launches)
        ],
        tmp_path / "s.ncu.duckdb",
    )  # fmt: skip
    return NcuData(path)


def test_the_hottest_kernels_are_chosen_where_they_are_close_together_in_the_second_half(tmp_path):
    step = [("a", 8, 500), ("b", 8, 20), ("c", 8, 300)]
    with open_survey(tmp_path, *[("fill", 99, 400)], *step * 6) as data:
        assert survey.choose_launches(data, (), 2) == survey.Choice(("a", "c"), 6, 2)
        assert survey.choose_launches(data, ("b",), 2).names == ("b",)


def test_the_same_function_with_another_grid_is_another_kernel(tmp_path):
    with open_survey(tmp_path, *[("a", 8, 500), ("a", 1, 1), ("a", 2, 400)] * 4) as data:
        choice = survey.choose_launches(data, (), 2)
    # Both large launches: the small one between them is profiled too, unless they are adjacent.
    assert (choice.names, choice.count) == (("a",), 2)


def test_launches_are_counted_per_process(tmp_path):
    with open_survey(tmp_path, ("a", 8, 100, 1), ("a", 8, 900, 2), ("a", 8, 100, 1), ("a", 8, 900, 2)) as data:
        assert survey.choose_launches(data, (), 1) == survey.Choice(("a",), 1, 1)


def test_an_unknown_kernel_is_a_usage_error(tmp_path):
    with open_survey(tmp_path, ("a", 8, 100)) as data, pytest.raises(UsageError, match="contains 'b'"):
        survey.choose_launches(data, ("b",), 1)
