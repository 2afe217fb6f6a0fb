"""Rules about communication: each finds what was planted, with its numbers, and no other."""

from __future__ import annotations

from functools import partial

import ailments
import pytest
from ailments import MS
from decode_ranks import DecodeRun
from opening import diagnose_with, open_trace, unpack
from rank_traces import Run
from sweeps import sweep

import nsys_insight

RULES = (*ailments.FAMILIES["ranks"], "slow-link")


@pytest.mark.parametrize("name", ailments.FAMILIES["ranks"])
def test_a_rule_fires_on_its_program_and_not_on_cured_ones(name, findings_of):
    ailments.check_rule(name, findings_of)


def test_objects_take_the_time_from_the_first_collective_to_the_last_copy(findings_of):
    finding = findings_of(ailments.objects)["object-collectives"]
    assert (finding.values["reads"], finding.values["read_bytes"]) == (2, 50)
    # Two calls and two pauses before the reads, which take some microseconds each.
    assert 200_000 < finding.values["span_ns"] < 240_000
    assert finding.recoverable_ns == pytest.approx(min(finding.values["span_ns"], finding.values["idle_ns"]))
    assert "gloo" in finding.cure.text or "one array" in finding.cure.text
    # The collectives take longer than their latency: they carry data, or wait for a rank.
    assert "object-collectives" not in findings_of(partial(ailments.objects, runs=150_000))


def test_gathers_in_one_unit(findings_of):
    finding = findings_of(ailments.shards)["exposed-gathers"]
    # Two gathers and a scatter of 800 µs each, which nothing hides.
    assert finding.recoverable_ns == pytest.approx(2.4 * MS, rel=0.01)
    assert (finding.values["gathers"], finding.values["scatters"]) == (2, 1)
    assert "fully_shard for blocks" in finding.cure.text or "several units" in finding.cure.text


def test_gathers_in_units_that_are_not_prefetched(findings_of):
    finding = findings_of(partial(ailments.shards, units=8))["exposed-gathers"]
    assert finding.recoverable_ns == pytest.approx(2.4 * MS, rel=0.01)
    assert "refetch" in finding.cure.text or "next unit before" in finding.cure.text


@pytest.mark.slow
def test_small_units(findings_of):
    finding = findings_of(ailments.small_shards)["small-units"]
    assert finding.values["gathers"] == 12
    # A unit computes for 100 µs; the host needs 300 µs and three launches for it.
    assert finding.values["compute_ns"] == pytest.approx(100_000, rel=0.05)
    assert finding.recoverable_ns == pytest.approx(12 * finding.values["idle_ns"], rel=0.01)


def test_small_exchanges(findings_of):
    findings = findings_of(ailments.tensor_parallel)
    assert findings["small-exchanges"].recoverable_ns == pytest.approx(20 * 8_000 / 2, rel=0.01)
    assert (findings["small-exchanges"].values["collectives"], len(findings)) == (20, 1)


def test_a_stage_that_waits_for_messages(findings_of):
    finding = findings_of(ailments.stage)["message-waits"]
    assert finding.values["exposed_ns"] == pytest.approx(4.1 * MS, rel=0.01)
    assert finding.recoverable_ns == pytest.approx(0.75 * 4.1 * MS, rel=0.01)
    assert finding.values["messages"] == 4


def test_one_reduction_in_fp32(findings_of):
    findings = findings_of(ailments.large_reductions)
    assert findings["one-reduction"].recoverable_ns == pytest.approx(1.5 * MS, rel=0.01)
    assert findings["fp32-gradients"].recoverable_ns == pytest.approx(0.75 * MS, rel=0.01)


@pytest.mark.slow
def test_rounds_of_reductions(findings_of):
    finding = findings_of(partial(ailments.large_reductions, rounds=4, count=4, is_late=False, stream=7))[
        "accumulated-reductions"
    ]
    assert (finding.values["rounds"], finding.values["round_collectives"]) == (4, 4)
    assert finding.recoverable_ns == pytest.approx(4 * 1.5 * MS * 3 / 4, rel=0.01)


@pytest.mark.slow
def test_a_reduction_of_the_loss_is_no_round_of_gradients(findings_of):
    finding = findings_of(ailments.micro_batches)["accumulated-reductions"]
    assert (finding.values["rounds"], finding.values["round_collectives"]) == (4, 4)
    # Three of four rounds of 1.5 ms are too many; the first step that is found lacks a round.
    assert finding.recoverable_ns == pytest.approx(4 * 1.5 * MS * 3 / 4, rel=0.1)
    assert "accumulated-reductions" not in findings_of(partial(ailments.micro_batches, is_reduced_once=True))


# tests/test_diagnosis.py has the fast link too.
@pytest.mark.parametrize(
    ("transfer", "share", "word"), [(1_000_000, 5.83, "NCCL_P2P_DISABLE"), *sweep([(100_000, None, "")])]
)
def test_a_link_that_is_slower_than_the_nvlinks(transfer, share, word, findings_of):
    run = Run(2, steps=6, buckets=1)
    run.transfer, run.jitter, run.leaves = transfer, 0, 1
    finding = findings_of(run.merged).get("slow-link")
    assert (finding and finding.values["nvlink_pct"]) == (share and pytest.approx(share, rel=0.01))
    if finding:
        # At half of 450 GB/s, 25 MiB take 117 µs.
        assert finding.recoverable_ns == pytest.approx(transfer - 116_508, rel=0.02)
        assert word in finding.cure.text


@pytest.mark.slow
def test_gpus_without_nvlinks_are_not_compared_with_them(findings_of):
    run = Run(2, steps=6)
    run.transfer = 1_000_000
    trace = run.merged()
    for gpu in range(2):
        trace.gpu(gpu, name="NVIDIA H100 PCIe")
    assert "slow-link" not in findings_of(lambda: trace)


def test_the_shares_of_exposed_time_agree_with_a_loop(tmp_path):
    """What `_exposed_collectives` says is what a loop over the kernels says."""
    path = ailments.large_reductions(count=4, is_late=False, kind="bf16").write(tmp_path / "trace.sqlite")
    with open_trace(path) as trace:
        rows = trace.sql("SELECT start_ns, end_ns, exposed_ns FROM _exposed_collectives").rows()
        work = trace.sql("SELECT start_ns, end_ns FROM _rank_work").rows()
    assert len(rows) >= 8
    for start, end, exposed_ns in rows:
        pieces = sorted((max(a, start), min(b, end)) for a, b in work if a < end and b > start)
        covered_ns, last = 0, start
        for a, b in pieces:
            covered_ns += max(b - max(a, last), 0)
            last = max(last, b)
        assert exposed_ns == end - start - covered_ns
    assert any(exposed_ns == 0 for *_, exposed_ns in rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        partial(ailments.shards, units=8, prefetches=True),
        partial(ailments.large_reductions, kind="bf16", count=4, is_late=False),
    ],
)
def test_overlapped_communication_is_no_ailment(make, findings_of):
    assert not findings_of(make)


@pytest.mark.parametrize(
    ("launch_ns", "codes"),
    [
        # Both hosts launch slowly, one even more slowly: one CUDA graph on both saves most of the step.
        ((30_000, 46_000), ["NSI101", "NSI502"]),
        # One host launches about as fast as its GPU runs, the other does not: most of the step is lateness.
        ((6_000, 20_000), ["NSI502", "NSI101"]),
    ],
)
def test_launch_overhead_of_all_ranks_comes_before_the_late_one(tmp_path, launch_ns, codes):
    with open_trace(DecodeRun(launch_ns).merged().write(tmp_path / "run.sqlite")) as opened_trace:
        findings = diagnose_with(opened_trace, "launch-bound", "late-rank").findings
    assert [finding.code for finding in findings] == codes


@pytest.mark.slow
def test_without_a_late_rank_launch_overhead_is_not_moved_to_the_front(shared):
    paths = [unpack(shared / "clinic" / f"after_rank{rank}.sqlite.xz") for rank in (0, 1)]
    with nsys_insight.open(paths) as trace:
        findings = diagnose_with(trace, "gradient-reduction-late", "graph-candidate").findings
    assert [finding.code for finding in findings] == ["NSI511", "NSI103"]
