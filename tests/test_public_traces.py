"""What traces of public repositories showed: sentences that were false or misleading, each on a small trace."""

from __future__ import annotations

import pytest
from opening import diagnose_with, evaluate_rules, open_trace
from synthetic import Trace

US, MS = 1_000, 1_000_000


def diagnose(trace, folder, *rules):
    """Diagnose a trace with some rules; return the diagnosis, and its text in one line."""
    with open_trace(trace.write(folder / "trace.sqlite")) as session:
        diagnosis = diagnose_with(session, *rules)
        return diagnosis, " ".join(diagnosis.text(None).split())


def evaluate(trace, folder, code):
    """Return the finding of one rule about a trace, or None."""
    with open_trace(trace.write(folder / "trace.sqlite")) as session:
        return next(iter(evaluate_rules(session, [code]).values()), None)


def find(diagnosis, code):
    """Return the finding with this code, also among those that others explain; else None."""
    findings = [*diagnosis.findings, *(also for finding in diagnosis.findings for also in finding.also)]
    return next((finding for finding in findings if finding.code == code), None)


# Ranges that go on after nsys lost CUDA ------------------------------------------------------------------------------


def make_lost_steps(recorded_count, lost_count, *, second_thread_until=None):
    """Make iterations in ranges; of the last ones the CUDA calls are lost, of a second thread's also before."""
    trace = Trace().gpu()
    host = trace.thread()
    worker = trace.thread(tid=2) if second_thread_until else None
    for number in range(recorded_count + lost_count):
        with host.nvtx(f"iteration{number}"):
            if number < recorded_count:
                host.copy("H2D", 1 << 20, runs=100 * US)
                for _ in range(10):
                    host.launch("forward(float *)", runs=50 * US)
                if worker and number < second_thread_until:
                    worker.now = host.now
                    worker.launch("backward(float *)", runs=50 * US)
                host.sync("device")
            host.idle(2 * MS)
    return trace


def test_ranges_after_the_last_cuda_call_are_no_steps(tmp_path):
    diagnosis, text = diagnose(make_lost_steps(12, 30), tmp_path, "capture-problem")
    assert diagnosis.steps["steady_count"] <= 12
    assert "-" not in text.split("% of the trace")[0].split()[-1]
    loss = find(diagnosis, "NSI901")
    assert "30 of 42 steps begin after the last CUDA call in the trace" in loss.evidence
    assert "thread" not in loss.evidence


def test_one_range_at_the_end_is_no_loss(tmp_path):
    assert evaluate(make_lost_steps(12, 1), tmp_path, "NSI901") is None


def test_a_thread_whose_calls_stop_before_the_others_is_named(tmp_path):
    loss = evaluate(make_lost_steps(20, 10, second_thread_until=8), tmp_path, "NSI901")
    assert "after step 7 a thread that launched in each step before has no calls" in loss.evidence


# Calls that fail ------------------------------------------------------------------------------------------------------


def test_failed_allocations_that_the_program_survives_are_not_the_first_finding(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for number in range(10):
        host.launch(f"start{number}(float *)", runs=MS).idle(5 * MS)
    host.call("cuMemAlloc_v2", returns=2).call("cuMemAlloc_v2", returns=2).call("cuMemAlloc_v2")
    for number in range(20):
        host.launch(f"later{number}(float *)", runs=MS).idle(5 * MS)
    diagnosis, text = diagnose(trace, tmp_path, "failed-calls", "cpu-work")
    failed = find(diagnosis, "NSI903")
    assert failed.severity == "warning"
    assert diagnosis.findings[0].code != "NSI903"
    assert "20 launch calls succeeded: the program went on" in text
    assert "Fix this first" not in failed.action


def test_rows_lost_with_a_failed_kernel_are_not_cured_by_another_nsys(tmp_path):
    trace = Trace()
    trace.thread().call("cudaMemcpy_v3020", takes=30 * MS).call("cudaLaunchKernel_v7000").call(
        "cudaDeviceSynchronize_v3020", takes=14 * MS, returns=700
    )
    diagnosis, text = diagnose(trace, tmp_path, "capture-problem")
    loss = find(diagnosis, "NSI901")
    assert "a kernel failed (error 700)" in loss.evidence
    assert loss.action == "Mend the failing kernel first (see the error of the call), and record again."
    assert "newer nsys or driver" not in text


# Messages between ranks, stalls ---------------------------------------------------------------------------------------


def make_exchange(message_ns):
    """Make iterations of a message of this length, then a kernel with two waits."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(12):
        start = host.now
        host.idle(message_ns)
        trace.row("MPI_OTHER_EVENTS", start=start, end=host.now, globalTid=host.global_tid, textId="MPI_Recv")
        host.launch("work(float *)", runs=5 * US).sync("stream").sync("stream")
    return trace


def test_waits_do_not_cost_the_time_of_messages(tmp_path):
    diagnosis, _ = diagnose(make_exchange(150 * US), tmp_path, "cpu-work", "sync-each-launch")
    assert diagnosis.findings[0].code == "NSI105"
    assert "in MPI calls, most in MPI_Recv" in diagnosis.findings[0].evidence
    waits = find(diagnosis, "NSI212")
    assert waits is None or waits.recoverable_ns < 50 * US


# Start-up -------------------------------------------------------------------------------------------------------------


def make_start(first_call, *stacks):
    """Make a program whose first call takes 100 ms, with a CPU sample each 10 ms on the next of these call stacks."""
    trace = Trace().gpu()
    host = trace.thread()
    for number in range(10):
        if stacks:
            host.sample(number * 10 * MS, *stacks[number % len(stacks)])
    host.call(first_call, takes=100 * MS)
    host.copy("H2D", 1 << 20, runs=MS).launch("work(float *)", runs=MS).sync("device")
    return trace


def test_functions_of_the_static_runtime_are_one(tmp_path):
    stacks = [
        [(f"libcudart_static_{digit * 40}", "/home/app"), (f"libcudart_static_{digit * 39}f", "/home/app")]
        for digit in "0123456789"
    ]
    evidence = evaluate(make_start("cudaMalloc_v3020", *stacks), tmp_path, "NSI603").evidence
    assert "100.0% in the CUDA runtime (app)" in evidence
    assert "libcudart_static" not in evidence


def test_a_few_late_launches_are_not_slow(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for number in range(4):
        host.launch(f"kernel{number}(float *)", runs=50 * US).sync("device")
        host.call("cudaStreamCreateWithFlags_v5000", takes=20 * MS)
    host.launch("last(float *)", runs=50 * US).sync("device")
    diagnosis, text = diagnose(trace, tmp_path, "slow-launches")
    assert diagnosis.verdict == "launch-bound"
    assert "because launches come late" in text
    assert "too slowly" not in text


# Names, samples and times ---------------------------------------------------------------------------------------------


def test_tuning_by_tensorflow_is_not_attributed_to_xla(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for number in range(20):
        host.launch(f"conv{number}(float *)", runs=100 * US)
        host.launch("redzone_checker", runs=300 * US)
    _, text = diagnose(trace, tmp_path, "replaceable-construct")
    assert "Kernels are tuned while the program runs" in text
    assert "XLA measures" not in text


def test_samples_without_a_warp_say_nothing_about_a_running_kernel(tmp_path):
    trace = Trace().gpu(smCount=28)
    trace.thread().launch("reduce(float *)", runs=100 * MS, grid=(1, 1, 1)).sync("device")
    for time in range(1_000):
        for name, value in (
            ("SMs Active [Throughput %]", 4), ("SM Issue [Throughput %]", 1), ("Tensor Active [Throughput %]", 0),
            ("DRAM Read Bandwidth [Throughput %]", 1), ("DRAM Write Bandwidth [Throughput %]", 0),
        ):  # fmt: skip
            trace.gpu_metric(name, time=time * 100 * US, value=value if time % 20 == 3 else 0)
    _, text = diagnose(trace, tmp_path, "hot-kernels")
    assert "only 0% of the SMs have work" not in text
    assert "only 4% of the SMs have work" in text


def test_a_kernel_of_one_block_is_described_once(tmp_path):
    trace = Trace().gpu()
    trace.thread().launch("reduce(float *)", runs=100 * MS, grid=(1, 1, 1)).sync("device")
    diagnosis, text = diagnose(trace, tmp_path, "one-block", "hot-kernels")
    assert diagnosis.findings[0].code == "NSI421"
    assert "grid 1x1x1" not in text


def test_a_few_short_steps_have_a_median_and_a_mean(tmp_path):
    """Else the time without nsys is that of another statistic, and longer than the one under nsys."""
    trace = Trace().gpu()
    host = trace.thread()
    for number in range(40):
        host.copy("H2D", 1 << 10, runs=2 * US)
        for _ in range(4):
            host.launch("work(float *)", runs=(25 if number % 5 < 2 else 100) * US)
        host.sync("device")
    diagnosis, text = diagnose(trace, tmp_path)
    assert diagnosis.steps["median_ns"] > 1.2 * diagnosis.wall_ns
    assert "(median)" in text
    assert "on average" in text


# A trace without work on the GPU --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "is_missing"),
    [
        ("Number of CUPTI events produced: 31, CUPTI buffers: 49 of 50. Some CUPTI events might be missing.", True),
        ("Not all CUDA events might have been collected.", True),
        ("Not all NVTX events might have been collected.", False),
    ],
)
def test_events_that_might_be_missing_may_be_the_work_on_the_gpu(tmp_path, message, is_missing):
    trace = Trace()
    trace.thread().call("cuInit").call("cuStreamCreate", takes=100 * US)
    trace.diagnostic(message, severity="Info")
    _, text = diagnose(trace, tmp_path)
    assert ("the program ran nothing on the GPU" in text) != is_missing
    assert text.count("nsys says that CUDA events might be missing") == int(is_missing)


def test_the_remedy_for_a_trace_without_cuda_is_given_once(tmp_path):
    trace = Trace()
    trace.thread().osrt("poll", takes=MS)
    _, text = diagnose(trace, tmp_path)
    assert text.count("nsys profile -t cuda") == 1


def test_a_program_is_not_named_after_the_launcher_that_it_replaced(tmp_path):
    trace = Trace().gpu()
    host = trace.thread(process="solver")
    host.launch("work(float *)", runs=MS).sync("device")
    trace.row("PROCESSES", globalPid=host.global_pid, pid=host.pid, name="nsys-launcher")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        assert session.sql("SELECT name FROM processes").rows() == [("solver",)]
        assert not any("left out" in note for note in session.answer("top").notes)
