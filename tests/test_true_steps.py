"""Steps of programs without a decoding loop, and the text if no steps exist."""

from __future__ import annotations

import polars as pl
import pytest
from opening import open_trace
from synthetic import Trace


def find_steps(trace, folder, **options):
    """Give the rows of `steps` and `step_method`."""
    return _query_steps(trace, folder, lambda _: "", options)[1:]


def diagnose_steps(trace, folder, **options):
    """Give the text of the diagnosis, in one line, and the rows of `steps` and `step_method`."""
    return _query_steps(
        trace, folder, lambda session: " ".join(session.diagnose(**options).text(None).split()), options
    )


def _query_steps(trace, folder, say, options):
    with open_trace(trace.write(folder / "trace.sqlite")) as session:
        text = say(session)
        session.answer("steps", **options)
        database = session._connection.duckdb
        steps = pl.DataFrame(database.sql("FROM steps WHERE step IS NOT NULL ORDER BY start_ns")).to_dicts()
        (method,) = pl.DataFrame(database.sql("FROM step_method")).to_dicts()
    return text, steps, method


def of_phase(steps, phase):
    return [row["step"] for row in steps if row["phase"] == phase]


# Coverage decides -----------------------------------------------------------------------------------------------------


def solver_with_small_copies():
    """Kernels that are different each time take the GPU's time; what repeats are copies of a few bytes."""
    trace = Trace()
    host = trace.thread()
    for number in range(12):
        host.launch(f"solve{number}(double *)", runs=900_000)
        if number == 6:
            for _ in range(40):
                host.copy("D2D", 64, runs=1_000).memset(64, runs=500)
    host.sync("device")
    return trace


@pytest.mark.slow
def test_what_holds_a_small_share_of_the_gpu_time_is_no_step(tmp_path):
    text, steps, method = diagnose_steps(solver_with_small_copies(), tmp_path)
    assert (method["method"], steps) == (None, [])
    assert "No repeating steps were found" in text
    assert "hold 0.6% of the GPU time" in text
    assert "in total" in text
    assert "µs per step" not in text


@pytest.mark.slow
def test_what_the_user_asks_for_is_taken_with_low_confidence(tmp_path):
    steps, method = find_steps(solver_with_small_copies(), tmp_path, step_method="sequence")
    assert method["confidence"] == "low"
    assert len(steps) > 20


def in_operators(name):
    """Training steps without a range of their own, whose operators have ranges."""
    trace = Trace()
    host = trace.thread()
    for number in range(8):
        for operator in range(4):
            with host.nvtx(name.replace("#", str(10 * number + operator))):
                host.launch(f"kernel{operator}(float *)", runs=30_000)
        host.sync("stream").idle(50_000)
    return trace


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["aten::copy_, op_id = #", "aten::addmm, seq = #", "autograd::engine::evaluate_function"]
)
def test_the_operators_of_a_framework_are_no_steps(name, tmp_path):
    steps, method = find_steps(in_operators(name), tmp_path)
    assert method["method"] == "sequence"
    assert {row["kernels"] for row in steps} == {4}


def test_ranges_that_the_user_names_may_be_operators(tmp_path):
    steps, _ = find_steps(in_operators("aten::copy_, op_id = #"), tmp_path, step_range="aten::copy_*")
    assert len(steps) == 32


@pytest.mark.slow
def test_steps_that_last_no_time_are_none(tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(6):
        with host.nvtx("step"):
            for name in ("a", "b"):
                host.launch(name, runs=5_000)
                trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1].update(start=50_000, end=55_000)
    text, steps, _ = diagnose_steps(trace, tmp_path)
    assert steps == []
    assert "No kernel, copy or memset" not in text


@pytest.mark.parametrize("method", ["auto", "sequence"])
def test_kernels_that_overlap_on_a_stream_mark_steps_as_well(method, tmp_path):
    # The clocks of host and GPU are fitted: on one stream, a kernel may begin before the one before it ends.
    trace = Trace()
    host = trace.thread()
    for _ in range(8):
        for name in ("a", "b"):
            host.launch(name, api=100, queue=0, runs=1_000)
    assert find_steps(trace, tmp_path, step_method=method)[0]


# Warm-up -------------------------------------------------------------------------------------------------------------


def training(first=(), *, range_name=None, steps=12):
    """Steps of four kernels. The `first` ones wait that long for the host, inside the range `range_name`."""
    trace = Trace()
    host = trace.thread()
    start_ns = host.now
    for number in range(steps):
        if number < len(first):
            host.idle(first[number])
        with host.nvtx(f"iteration {number}"):
            for kernel in ("forward", "loss", "backward", "update"):
                host.launch(f"{kernel}(float *)", runs=100_000)
            host.sync("stream")
            host.idle(first[number] if number < len(first) else 0)
        if range_name and number == len(first) - 1:
            host.range(range_name, start_ns, host.now)
    return trace


@pytest.mark.slow
@pytest.mark.parametrize("name", ["warmup", "Warm-up", "warming up", "model_warm_up"])
def test_steps_in_a_range_that_is_called_warm_up_are_warm_up(name, tmp_path):
    steps, _ = find_steps(training([0, 0, 0], range_name=name), tmp_path)
    assert of_phase(steps, "warm-up") == [0, 1, 2]
    assert steps[0]["reason"] == "in a range named warm-up"


def test_a_range_of_another_name_is_no_warm_up(tmp_path):
    assert of_phase(find_steps(training([0, 0, 0], range_name="swarmupdate"), tmp_path)[0], "warm-up") == []


@pytest.mark.slow
def test_a_step_that_is_like_no_other_is_warm_up_also_after_one_that_is(tmp_path):
    # The first step runs as written, the second one compiles.
    steps, _ = find_steps(training([0, 30_000_000]), tmp_path)
    assert of_phase(steps, "warm-up") == [0, 1]
    assert "times the median" in steps[1]["reason"]


@pytest.mark.slow
def test_a_slow_step_later_on_is_none(tmp_path):
    steps, _ = find_steps(training([0, 0, 0, 0, 0, 0, 900_000]), tmp_path)
    assert of_phase(steps, "warm-up") == []


# Periods nest ---------------------------------------------------------------------------------------------------------


def model(layers=32, tokens=6, *, head=(), last=20_000):
    """Layers of five kernels, the `last` one's of another length, and then the kernels of the `head`."""
    trace = Trace()
    host = trace.thread()
    for _ in range(tokens):
        for layer in range(layers):
            for kernel in ("norm", "qkv", "attention", "mlp", "add"):
                runs = last if layer == layers - 1 and kernel == "mlp" else 20_000
                host.launch(f"{kernel}(half *)", runs=runs, api=2_000)
        for kernel in head:
            host.launch(f"{kernel}(half *)", runs=10_000, api=2_000)
    host.sync("device")
    return trace


@pytest.mark.slow
def test_layers_with_a_small_head_are_a_step(tmp_path):
    # The head is 0.6% of the step.
    steps, method = find_steps(model(head=["head", "argmax"]), tmp_path)
    assert method["step_count"] == 6
    assert {row["kernels"] for row in steps[1:-1]} == {162}


@pytest.mark.slow
def test_layers_of_which_the_last_is_longer_are_a_step(tmp_path):
    steps, method = find_steps(model(last=90_000), tmp_path)
    assert {row["kernels"] for row in steps if row["phase"] == "steady"} == {160}
    assert "32 repetitions a step" in method["pattern"]


@pytest.mark.slow
def test_layers_that_are_all_alike_are_steps_by_themselves(tmp_path):
    steps, _ = find_steps(model(), tmp_path)
    assert {row["kernels"] for row in steps if row["phase"] == "steady"} == {5}


# Ranks ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_rank_that_spins_in_collectives_does_not_tell_the_steps(tmp_path):
    # The first rank waits for the second one in a collective for longer than anything computes.
    trace = Trace()
    for pid, runs, spins in ((100, 100_000, 900_000), (200, 500_000, 100_000)):
        host = trace.thread(pid=pid, gpus=(pid // 100 - 1,))
        for _ in range(8):
            host.launch("gemm(float *)", runs=runs).launch("norm(float *)", runs=runs // 10)
            host.launch("ncclDevKernel_AllReduce_Sum_f16_RING_LL(int)", runs=spins, stream=20)
            host.sync("device")
    _, method = find_steps(trace, tmp_path)
    assert method["process_id"] == 200
