"""`bench` as users see it: the outputs that it reads, the commands that it runs, and its messages."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import command_line
import numpy as np
import pytest
from schemas import validate

from nsys_insight.bench import checks, conditions, measure, sanitizer
from nsys_insight.compare.benchmark_formats import parse_json, parse_text


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return command_line.run


@pytest.fixture
def program(monkeypatch):
    """Replace processes by a function that makes the output from the last word of a command; record the factors."""
    turns = []

    def run_fake_program(command, *_):
        words = command if isinstance(command, list) else command.split()
        factor = float(words[-1])
        turns.append(factor)
        wobble = 1 + 0.004 * (len(turns) * 7 % 5 - 2)
        text = (
            f"PARAM batch {words[0]}\nRESULT decode {400 * factor * wobble} tok/s\nRESULT memory {1000 * factor} MiB\n"
        )
        return SimpleNamespace(
            code=0 if factor else 3, output=text, errors="no GPU\n", seconds=1.0, last_lines="no GPU"
        )

    monkeypatch.setattr(measure.programs, "run", run_fake_program)
    return turns


def readings(output):
    return {(reading.name, reading.unit): reading.values for reading in output.readings}


class TestOutputOfBenchmarks:
    def test_result_and_param_lines_among_others(self):
        output = parse_text(
            "hello\nRESULT decode 1,412.5 tok/s\nRESULT it 3\nRESULT decode 1e3 tok/s\nPARAM model a b\n"
        )
        assert readings(output) == {("decode", "tok/s"): (1412.5, 1000), ("it", ""): (3,)}
        assert output.parameters == {"model": "a b"}
        assert parse_text("RESULTS are good\nRESULT x\nRESULT x y z\n").readings == ()

    def test_a_regular_expression_has_priority(self):
        text = "RESULT a 1 ms\nspeed: 12.5 GB/s in 3 ms\nspeed: 13.5 GB/s in 2 ms\n"
        output = parse_text(text, {"copy": (r"speed: ([\d.]+)", "GB/s"), "never": ("nothing", "")})
        assert readings(output) == {("copy", "GB/s"): (12.5, 13.5)}

    @pytest.mark.parametrize(
        ("document", "expected"),
        [
            ({"results": [{"command": "./a", "times": [1.0, 2.0]}]}, {("./a: time", "s"): (1, 2)}),
            ({"benchmarks": [{"name": "t", "stats": {"data": [0.5]}}]}, {("t: time", "s"): (0.5,)}),
            ({"benchmarks": [{"name": "t", "stats": {"mean": 0.25}}]}, {("t: time", "s"): (0.25,)}),
            (
                {
                    "context": {},
                    "benchmarks": [
                        {"name": "BM/8", "run_name": "BM/8", "run_type": "iteration", "real_time": 5, "cpu_time": 4,
                         "time_unit": "us", "items_per_second": 7e6},
                        {"name": "BM/8", "run_name": "BM/8", "run_type": "iteration", "real_time": 6, "cpu_time": 5,
                         "time_unit": "us", "items_per_second": 6e6},
                        {"name": "BM/8_mean", "run_name": "BM/8", "run_type": "aggregate", "real_time": 5.5},
                    ],
                },
                {("BM/8: real_time", "us"): (5, 6), ("BM/8: cpu_time", "us"): (4, 5),
                 ("BM/8: items_per_second", ""): (7e6, 6e6)},
            ),
            (
                {"benchmarks": [{"name": "copy", "states": [
                    {"name": "N=1", "is_skipped": False, "summaries": [
                        {"tag": "nv/cold/time/gpu/mean", "data": [{"name": "value", "value": "1.5e-05"}]},
                        {"tag": "nv/cold/time/gpu/stdev/relative", "data": [{"name": "value", "value": "0.1"}]},
                        {"tag": "nv/cold/bw/global/bytes_per_second", "data": [{"name": "value", "value": "2e12"}]}]},
                    {"name": "N=2", "is_skipped": True, "summaries": None}]}]},
                {("copy N=1: gpu_time", "s"): (1.5e-05,), ("copy N=1: global_bandwidth", "bytes/s"): (2e12,)},
            ),
            (
                {"backend": "vllm", "model_id": "m", "num_prompts": 100, "request_rate": 4.0, "completed": 100,
                 "output_throughput": 900.0, "mean_ttft_ms": 20.0, "std_ttft_ms": 3.0, "itls": [[0.1]]},
                {("output_throughput", ""): (900,), ("mean_ttft_ms", ""): (20,)},
            ),
            ({"avg_latency": 1.5, "latencies": [1.4, 1.6], "percentiles": {"50": 1.5}}, {("latency", "s"): (1.4, 1.6)}),
            ([{"gflops": 9.5, "n": "a"}, {"gflops": 9.7}], {("gflops", ""): (9.5, 9.7)}),
            ([1, 2.5], {("value", ""): (1, 2.5)}),
        ],
        ids=["hyperfine", "pytest", "pytest-mean", "google", "nvbench", "vllm-serve", "vllm-latency", "runs", "list"],
    )  # fmt: skip
    def test_json_of_common_tools_is_read(self, document, expected):
        assert readings(parse_json(document)) == expected
        assert readings(parse_text("Some talk.\n" + json.dumps(document, indent=1))) == expected

    def test_workload_parameters_are_not_results(self):
        line = {"backend": "sglang", "max_concurrency": 8, "random_input_len": 128, "output_throughput": 5.0}
        output = parse_text(f"{json.dumps(line)}\n{json.dumps({**line, 'output_throughput': 6.0})}\n")
        assert readings(output) == {("output_throughput", ""): (5, 6)}
        assert output.parameters == {"backend": "sglang", "max_concurrency": "8", "random_input_len": "128"}

    @pytest.mark.parametrize(
        "document", [{}, [], {"results": []}, {"benchmarks": [{"name": "x", "stats": {}}]}, "x", 7, None]
    )
    def test_anything_else_has_no_readings(self, document):
        assert parse_json(document).readings == ()


class TestOneCommand:
    def test_rows_have_the_direction_of_each_metric(self, run, program):
        result = run("bench", "--warmup", 2, "-f", "json", "--", "8", "1.0")
        answer = json.loads(result.stdout)
        validate(answer, "bench", "answer")
        assert [(row["metric"], row["better"], row["count"]) for row in answer["rows"]] == [
            ("decode [tok/s]", "higher", 10), ("memory [MiB]", "lower", 10),
        ]  # fmt: skip
        assert answer["rows"][0]["low"] <= 400 <= answer["rows"][0]["high"]
        assert len(program) == 12
        assert answer["summary"]["sides"][0]["parameters"] == {"batch": "8"}
        assert (result.returncode, answer["summary"]["tests_passed"]) == (0, None)

    def test_it_repeats_until_the_interval_is_narrow_or_the_budget_is_spent(self, run, program):
        run("bench", "--precision", 0.01, "--max-runs", 17, "--warmup", 0, "--", "8", "1.0")
        assert len(program) == 17
        program.clear()
        messages = run("bench", "--precision", 0.01, "--budget", "0s", "--warmup", 0, "--", "8", "1.0").stderr
        assert len(program) == 10
        assert "the budget of 0 s was spent before the interval was narrow" in messages

    def test_a_command_without_measurements_is_timed(self, run):
        result = run(
            "bench", "--warmup", 0, "--min-runs", 1, "--max-runs", 1, "-f", "json", "--", sys.executable, "-c", "pass"
        )
        (row,) = json.loads(result.stdout)["rows"]
        assert (row["metric"], row["better"], row["low"]) == ("wall [s]", "lower", None)

    def test_a_results_file_is_read_instead_of_stdout(self, run):
        code = "import json; json.dump([{'gflops': 9.5}], open('out.json', 'w'))"
        flags = ["--warmup", 0, "--min-runs", 1, "--max-runs", 1, "--results", "out.json", "-f", "json"]
        answer = json.loads(run("bench", *flags, "--", sys.executable, "-c", code).stdout)
        assert (answer["rows"][0]["metric"], answer["rows"][0]["estimate"]) == ("gflops", 9.5)

    @pytest.mark.parametrize(
        "code",
        [
            "raise SystemExit(1)",
            "pass",
            "open('out.json', 'w').write('[{'); raise SystemExit(1)",
            "open('out.json', 'w').write('nothing')",
        ],
    )
    def test_the_old_results_stay_if_the_command_writes_no_new_ones(self, run, tmp_path, code):
        (tmp_path / "out.json").write_text("old")
        before = sorted(tmp_path.iterdir())
        result = run("bench", "--warmup", 0, "--results", "out.json", "--", sys.executable, "-c", code)
        assert result.returncode == 1
        assert (tmp_path / "out.json").read_text() == "old"
        assert sorted(tmp_path.iterdir()) == before

    def test_old_results_do_not_count(self, run, tmp_path):
        """The command appends to the file."""
        (tmp_path / "out.json").write_text("old")
        before = sorted(tmp_path.iterdir())
        code = "open('out.json', 'a').write('''[{\"gflops\": 9.5}]''')"
        flags = ["--warmup", 1, "--min-runs", 2, "--max-runs", 2, "--results", "out.json"]
        assert run("bench", *flags, "--", sys.executable, "-c", code).returncode == 0
        assert (tmp_path / "out.json").read_text() == "old" + 3 * '[{"gflops": 9.5}]'
        assert sorted(tmp_path.iterdir()) == before

    @pytest.mark.usefixtures("program")
    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            ([], 2, "bench takes one command"),
            (["--before", "a"], 2, "bench takes one command"),
            (["--read", "nowhere.txt"], 2, "nowhere.txt cannot be read"),
            (["--metric", "x[y=(", "--", "8", "1"], 2, "--metric cannot be"),
            (["--metric", "x=(", "--", "8", "1"], 2, "is no regular expression"),
            (["--metric", "x=nothing", "--", "8", "1"], 1, "printed nothing that --metric x matches"),
            (["--metric", "speed", "--", "8", "1"], 2, "there is no metric 'speed'"),
            (["--param", "batch", "--", "8", "1"], 2, "--param takes NAME=VALUE"),
            (["--", "8", "0"], 1, "8 0 ended with exit code 3: no GPU"),
            (["--baseline", "nowhere.json", "--", "8", "1"], 2, "nowhere.json cannot be read"),
        ],
    )
    def test_every_error_has_its_exit_code_and_a_hint(self, run, arguments, code, message):
        result = run("bench", *arguments)
        assert (result.returncode, message in result.stderr, "hint: " in result.stderr) == (code, True, True), (
            result.stderr
        )

    def test_a_timeout_ends_the_program_and_its_children(self, run):
        result = run("bench", "--timeout", "0.2s", "--warmup", 0, "--before", "sleep 60 & sleep 60", "--after", "true")
        assert (result.returncode, "did not end in time" in result.stderr) == (1, True)

    @pytest.mark.parametrize(
        ("third", "message"),
        [
            ("RESULT b 1 ms", "a was not measured in repetition 3, unlike before"),
            ("RESULT a nan ms", "a is not a number in"),
        ],
    )
    def test_repetitions_must_measure_the_same_metrics(self, run, monkeypatch, third, message):
        texts = iter(["RESULT a 1 ms", "RESULT a 1 ms", third])
        outcome = SimpleNamespace(code=0, errors="", seconds=1.0, last_lines="")
        monkeypatch.setattr(measure.programs, "run", lambda *_: SimpleNamespace(**vars(outcome), output=next(texts)))
        result = run("bench", "--warmup", 0, "--", "x")
        assert (result.returncode, message in result.stderr) == (1, True)

    def test_a_missing_program_is_a_usage_error(self, run):
        assert run("bench", "--", "no-such-program-here").returncode == 2


class TestTwoSides:
    def decision(self, result):
        return json.loads(result.stdout)["summary"]["decision"]

    def test_two_commands_take_turns(self, run, program):
        flags = ["bench", "--warmup", 0, "-f", "json", "--before", "8 1.0", "--after", "8 1.1"]
        result = run(*flags, "--test", "8 1")
        assert (result.returncode, self.decision(result)) == (0, "accept")
        validate(json.loads(result.stdout), "bench", "answer")
        assert program[1:9] == [1.0, 1.1, 1.1, 1.0, 1.0, 1.1, 1.1, 1.0]
        rows = json.loads(result.stdout)["rows"]
        assert [row["verdict"] for row in rows] == ["improved", "regressed"]
        assert rows[0]["low_pct"] < 10 < rows[0]["high_pct"]
        unchecked = run(*flags)
        assert (unchecked.returncode, self.decision(unchecked)) == (0, "unchecked")
        assert "correctness was not checked" in " ".join(json.loads(unchecked.stdout)["notes"])

    @pytest.mark.usefixtures("program")
    def test_a_worse_or_wrong_change_exits_1(self, run):
        worse = run("bench", "--warmup", 0, "--before", "8 1.0", "--after", "8 0.9")
        assert (worse.returncode, worse.stdout.startswith("Regressed: decode ")) == (1, True)
        wrong = run("bench", "--warmup", 0, "--before", "8 1.0", "--after", "8 1.1", "--test", "8 0")
        assert (wrong.returncode, wrong.stdout.startswith("Failed: 8 0: exit code 3: no GPU")) == (1, True)

    @pytest.mark.usefixtures("program")
    def test_the_user_chooses_the_metric_and_its_direction(self, run):
        sides = ["--before", "8 1.0", "--after", "8 1.1"]
        flags = ["bench", "--warmup", 0, "--metric", "memory", *sides]
        assert run(*flags).stdout.startswith("Regressed: memory 1,000 → 1,100 MiB (+10.0%), lower is better")
        higher = run(*flags, "--higher", "memory")
        assert higher.stdout.startswith("Improved, but correctness was not checked: memory")

    @pytest.mark.usefixtures("program")
    def test_different_workloads_are_compared_only_on_request(self, run):
        flags = ["bench", "--warmup", 0, "--before", "8 1.0", "--after", "16 1.1"]
        result = run(*flags)
        assert result.stdout.startswith("Cannot be determined: the workloads differ: batch 8 and 16")
        assert run(*flags, "--vary", "batch").stdout.startswith("Improved")

    @pytest.mark.usefixtures("program")
    def test_a_saved_benchmark_is_a_baseline_and_a_side_of_diff(self, run):
        for name, factor in (("old", "1.0"), ("new", "0.8")):
            assert run("bench", "--warmup", 0, "-o", f"{name}.json", "--", "8", factor).returncode == 0
        result = run("bench", "--warmup", 0, "--baseline", "old.json", "--", "8", "0.8")
        assert (result.returncode, result.stdout.startswith("Regressed: decode 400")) == (1, True)
        assert "measured one after the other" in result.stderr
        assert run("diff", "old.json", "new.json").stdout.startswith("Regressed: decode [tok/s] ")

    def test_a_log_file_is_read(self, run, tmp_path):
        (tmp_path / "log.txt").write_text("".join(f"RESULT gemm {900 + index} GFLOP/s\n" for index in range(8)))
        answer = json.loads(run("bench", "--read", "log.txt", "-f", "json").stdout)
        assert (answer["rows"][0]["count"], answer["rows"][0]["estimate"]) == (8, 903.5)


class TestGpus:
    @pytest.mark.usefixtures("program")
    def test_clocks_temperature_and_other_processes(self, run, monkeypatch):
        class Nvml(SimpleNamespace):
            def __getattr__(self, name):
                return lambda *_: None

        temperatures = iter([40, 61] + [61] * 99)
        nvml = Nvml(
            NVMLError=OSError, NVML_CLOCK_SM=1, NVML_CLOCK_MEM=2, NVML_TEMPERATURE_GPU=0,
            nvmlDeviceGetCount=lambda: 1, nvmlDeviceGetName=lambda _: b"NVIDIA H100",
            nvmlSystemGetDriverVersion=lambda: "580.1", nvmlSystemGetCudaDriverVersion=lambda: 13000,
            nvmlDeviceGetClockInfo=lambda *_: 1980, nvmlDeviceGetTemperature=lambda *_: next(temperatures),
            nvmlDeviceGetComputeRunningProcesses=lambda _: [object()],
            nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: 0x4,
        )  # fmt: skip
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        monkeypatch.setattr(conditions, "_SAMPLE_INTERVAL_S", 0.0)
        result = run("bench", "--warmup", 0, "--", "8", "1.0")
        assert "1 other process uses GPU 0, and may disturb the measurement" in result.stderr
        assert "GPU 0 went from 40 °C to 61 °C" in result.stderr
        assert "driver 580.1, cuda 13.0, gpu NVIDIA H100" in result.stderr

    @pytest.mark.usefixtures("program")
    def test_missing_nvml_is_reported_once(self, run, monkeypatch):
        monkeypatch.setitem(sys.modules, "pynvml", None)
        assert run("bench", "--", "8", "1.0").stderr.count("GPU clocks, temperature and other processes are not") == 1


class TestOutputs:
    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            ("a 1.0 b\n", "a 1.000001 b\n", True), ("a 1.0 b\n", "a 1.1 b\n", False), ("a 1 b\n", "a 2 b\n", False),
            ("a 1.0\n", "b 1.0\n", False), ("nan\n", "nan\n", True), ("1.0\n", "1.0\n2.0\n", False),
            ("1 2\n", "1 2\n", True), ("inf\n", "1.0\n", False), ("-1e-9\n", "0.0\n", True),
        ],
    )  # fmt: skip
    def test_texts_agree_except_for_the_last_digits(self, tmp_path, first, second, expected):
        paths = [tmp_path / name for name in ("one.txt", "other.txt")]
        for path, text in zip(paths, (first, second), strict=True):
            path.write_text(text)
        assert checks.compare_outputs(*paths, rtol=1e-5, atol=1e-8)[0] is expected

    def test_json_and_arrays(self, tmp_path):
        for name, value in (("a", {"x": [1, 2.0]}), ("b", {"x": [1, 2.0000001]}), ("c", {"y": [1, 2.0]})):
            (tmp_path / f"{name}.json").write_text(json.dumps(value))
        a, b, c = (tmp_path / f"{name}.json" for name in "abc")
        assert checks.compare_outputs(a, b, rtol=1e-5, atol=0)[0]
        assert not checks.compare_outputs(a, c, rtol=1e-5, atol=0)[0]
        arrays = {"a": np.ones((2, 3)), "b": np.ones((2, 3)) + 1e-7, "c": np.ones((3, 2)), "d": np.full((2, 3), np.nan)}
        for name, array in arrays.items():
            np.save(tmp_path / f"{name}.npy", array)
        results = [
            checks.compare_outputs(tmp_path / "a.npy", tmp_path / f"{name}.npy", rtol=1e-5, atol=0) for name in "bcd"
        ]
        assert [agree for agree, _ in results] == [True, False, False]
        assert "has the shape (2, 3), and (3, 2)" in results[1][1]
        assert "6 of 6 values of a differ: the first at [0, 0] is 1.0, and nan" in results[2][1]


def test_a_missing_compute_sanitizer_is_a_tool_error(run, program, monkeypatch):
    monkeypatch.setattr(sanitizer.programs, "find_tool", lambda _: None)
    result = run("bench", "--sanitize", "--", "8", "1.0")
    assert (result.returncode, "compute-sanitizer is not on the PATH" in result.stderr) == (4, True)
