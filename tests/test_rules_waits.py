"""Rules about waits, small copies, blocks and collectives: each finds what was planted, with its numbers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import ailments
import pytest
from ailments import BF16, LARGE, MS, run_steps
from opening import evaluate_rules, open_trace, unpack
from synthetic import Trace

RULES = ailments.FAMILIES["waits"]
CLINIC = Path(__file__).parents[2] / "shared" / "clinic"


@pytest.mark.parametrize("name", RULES)
def test_a_rule_fires_on_its_program_and_not_on_cured_ones(name, findings_of):
    ailments.check_rule(name, findings_of)


def mean_step_ns(program):
    """Give the mean wall time of the steps that were planted, without the first and the last."""
    steps = program.steps[1:-1]
    return sum(step.wall_ns for step in steps) / len(steps)


@pytest.mark.parametrize(
    ("name", "make", "make_cured"),
    [
        ("scalar-read-backs", ailments.norms, partial(ailments.norms, reads=1)),
        ("sync-each-launch", ailments.waits, partial(ailments.waits, waits_each=False)),
        ("sync-after-copy", ailments.synced_copies, partial(ailments.synced_copies, has_waits=False)),
        ("small-copies", ailments.small_copies, partial(ailments.small_copies, copies=0)),
        ("one-gang", ailments.directives, partial(ailments.directives, gangs=4096, runs=5_000)),
        ("implicit-copies", ailments.directives, partial(ailments.directives, copies=False)),
        ("tiny-d2d", ailments.tiny_copies, partial(ailments.tiny_copies, copies=1)),
        (
            "one-block",
            partial(ailments.single_kernel, grid=(1, 1, 1), block=(256, 1, 1)),
            partial(run_steps, lambda loop, _: loop.launch("fill(float *)", 205_000, **LARGE)),
        ),
    ],
)
def test_what_the_cure_saves_is_within_the_estimate(name, make, make_cured, findings_of):
    finding = findings_of(make)[name]
    saved_ns = mean_step_ns(make()) - mean_step_ns(make_cured())
    assert 0.95 * finding.saving_low_ns <= saved_ns <= 1.1 * finding.recoverable_ns
    # Of idle time, nsys may have caused a part. Then the range of the step without nsys makes this range wider.
    if name not in {"scalar-read-backs", "small-copies", "tiny-d2d"}:
        assert finding.recoverable_ns <= 3.01 * finding.saving_low_ns


class TestDirectives:
    def test_the_construct_is_named_by_its_line(self, findings_of):
        findings = findings_of(ailments.directives)
        assert findings["one-gang"].evidence.startswith("solve.c:40 starts 1 gang on a GPU of 132 SMs")
        copies = findings["implicit-copies"]
        assert copies.evidence.startswith(
            "solve.c:40: 2 copies per step, 2.00 MiB together, at the line of the construct itself"
        )
        assert "[grid]" in copies.evidence


class TestReadBacks:
    def test_the_values_and_their_kernel_are_named(self, findings_of):
        finding = findings_of(ailments.norms)["scalar-read-backs"]
        assert (finding.values["reads"], finding.values["most_bytes"]) == (pytest.approx(8), 4)
        assert "most of them read what reduce_kernel computes" in finding.evidence

    def test_other_work_of_the_host_is_not_saved(self, findings_of):
        def body(loop, _):
            loop.launch(BF16, 100_000, **LARGE)
            for _ in range(5):
                loop.launch("norm(float *)", 10_000, **LARGE)
                loop.copy("D2H", 4, 1_000, blocking=True)
                loop.python(2 * MS)

        finding = findings_of(partial(run_steps, body))["scalar-read-backs"]
        assert finding.recoverable_ns <= 5 * 100_000


class TestWaitAfterEachLaunch:
    def test_waits_and_launches_are_counted(self, findings_of):
        finding = findings_of(ailments.waits)["sync-each-launch"]
        assert finding.values["launches"] == pytest.approx(6)
        assert finding.values["waits"] == pytest.approx(7)  # one at the end of the step
        assert "most of the waits in cudaStreamSynchronize" in finding.evidence
        # The variable makes launch calls wait, and calls no synchronization.
        assert "CUDA_LAUNCH_BLOCKING" not in finding.action

    def test_launches_that_block_are_seen_without_waits(self, tmp_path):
        trace = Trace().gpu()
        host = trace.thread()
        for _ in range(12):
            for name in ("advect", "diffuse", "project", "bound"):
                # A call that waits returns after the end of its kernel.
                host.launch(f"{name}(float *)", api=40_000, queue=-35_000, runs=30_000, **LARGE)
            host.idle(10_000).copy("D2H", 8).sync("stream")
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
            finding = evaluate_rules(session, RULES)["sync-each-launch"]
        assert finding.values["blocking_calls"] == pytest.approx(4)
        assert finding.action.startswith("Unset CUDA_LAUNCH_BLOCKING if it is set.")
        assert "waits" not in finding.values or finding.values["waits"] is None
        # Of 40 µs a kernel, the GPU is idle for 10.
        assert finding.recoverable_ns <= 4 * 10_000 + 25_000


class TestCopies:
    def test_small_copies_are_counted_with_their_bytes(self, findings_of):
        finding = findings_of(ailments.small_copies)["small-copies"]
        assert {name: finding.values[name] for name in ("copies", "most_bytes", "total_bytes", "waits")} == {
            "copies": pytest.approx(20), "most_bytes": 4, "total_bytes": pytest.approx(80), "waits": pytest.approx(20),
        }  # fmt: skip
        assert "sync-each-launch" not in findings_of(ailments.small_copies)

    def test_copies_with_waits_are_counted(self, findings_of):
        values = findings_of(ailments.synced_copies)["sync-after-copy"].values
        assert (values["copies"], values["mean_bytes"]) == (pytest.approx(8), 1 << 18)

    def test_copies_within_the_gpu_are_counted(self, findings_of):
        values = findings_of(ailments.tiny_copies)["tiny-d2d"].values
        assert (values["copies"], values["mean_bytes"]) == (pytest.approx(100), 4096)
        assert values["copy_ns"] == pytest.approx(150_000)


class TestBlocks:
    def test_one_block_leaves_all_but_one_sm_idle(self, findings_of):
        finding = findings_of(partial(ailments.single_kernel, grid=(1, 1, 1), block=(256, 1, 1)))["one-block"]
        assert (finding.place, finding.values["blocks"], finding.values["sm_count"]) == ("total", 1, 132)
        assert finding.values["mean_ns"] == 600_000
        assert finding.recoverable_ns == pytest.approx(600_000 * 131 / 132, rel=0.01)

    def test_empty_lanes_are_what_is_lost(self, findings_of):
        finding = findings_of(ailments.AILING["small-blocks"])["small-blocks"]
        assert (finding.values["threads"], finding.values["lane_pct"]) == (16, 50)
        assert finding.recoverable_ns == pytest.approx(300_000, rel=0.01)
        assert "per microsecond" not in finding.evidence

    @pytest.mark.slow  # tests/test_rule_limits.py
    def test_full_blocks_with_too_little_work_are_as_many_as_the_gpu_can_start(self, findings_of):
        program = partial(ailments.single_kernel, grid=(1_000_000, 1, 1), block=(128, 1, 1))
        finding = findings_of(program)["small-blocks"]
        assert "1,000,000 blocks of 128 threads, each with too little work" in finding.evidence
        assert "lanes" not in finding.evidence
        assert "Give each thread of total several elements" in finding.action


class TestCollectives:
    def test_late_reductions_are_counted(self, findings_of):
        finding = findings_of(ailments.BLOCKS_AND_GRADIENTS)["gradient-reduction-late"]
        assert finding.values["collectives"] == 8
        assert finding.values["late_steps"] == finding.values["steps"]
        assert finding.values["span_ns"] == pytest.approx(700_000, rel=0.02)  # without the first one

    def test_small_reductions_are_counted(self, findings_of):
        finding = findings_of(ailments.small_reductions)["small-buckets"]
        assert (finding.values["collectives"], finding.values["median_ns"]) == (pytest.approx(16), 12_000)
        host_ns = finding.values["collective_host_ns"]
        assert 25_000 <= host_ns <= 35_000  # the Python after it, and its call
        assert finding.recoverable_ns == pytest.approx(16 * host_ns, rel=0.05)


@pytest.mark.slow  # tests/test_true_cures.py has the rows
def test_all_of_the_time_of_allocations_shortens_the_idle_time(tmp_path):
    def body(loop, _):
        loop.launch(BF16, 60_000, **LARGE)
        loop.malloc(1 << 20, 100_000)
        loop.launch("update(float *)", 20_000, **LARGE)
        loop.python(80_000)

    with open_trace(run_steps(body, sync=False).write(tmp_path / "trace.sqlite")) as trace:
        finding = evaluate_rules(trace, ["allocation"])["allocation"]
    assert finding.values["host_ns"] == pytest.approx(100_000, rel=0.05)
    assert finding.values["idle_ns"] < 0.9 * finding.recoverable_ns
    assert finding.recoverable_ns == pytest.approx(100_000, rel=0.05)
    assert finding.saving_low_ns == pytest.approx(0.35 * finding.recoverable_ns)


def unpack_clinic(name):
    """Unpack a trace of the clinic."""
    archive = CLINIC / f"{name}.sqlite.xz"
    if not archive.exists():
        pytest.skip("needs the traces of the clinic")
    return unpack(archive)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["after_rank0", "after_rank1"])
def test_late_reductions_of_a_real_run(name):
    with open_trace(unpack_clinic(name)) as trace:
        finding = evaluate_rules(trace, RULES)["gradient-reduction-late"]
    assert finding.values["collectives"] == 72
    assert finding.saving_low_ns <= 3.9 * MS <= finding.recoverable_ns


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fp32", "adam", "attention", "breaks", "checkpoint", "jaxloop", "late_rank1"])
def test_other_programs_have_none_of_these(name):
    with open_trace(unpack_clinic(name)) as trace:
        assert evaluate_rules(trace, RULES) == {}
