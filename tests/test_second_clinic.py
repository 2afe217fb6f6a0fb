"""The second clinic: programs written by somebody who did not know the rules, and their first findings."""

from __future__ import annotations

import pytest
from command_line import REPOSITORY
from opening import evaluate_rules, open_trace, unpack
from sweeps import sweep

TRACES = REPOSITORY / "benchmarks" / "clinic2" / "traces"
# The code of the first finding, and words of its cure; None where nothing is to be mended.
FIRST = {
    "citations": ("NSI701", "torch.sparse"),
    "options_book": ("NSI701", "curand_init once"),
    "packed_norm": ("NSI701", "Tune once"),
    "shop": ("NSI701", "F.embedding"),
    "shrink": ("NSI421", "many blocks"),
    "sonar": ("NSI107", "axis="),
    "basin": (None, ""),
    "optics": (None, ""),
}


# The first finding is looked for with all rules; by default on some of the programs, on the others its rule
# alone. tests/test_severities.py has a healthy program.
ALL_RULES = {"sonar"}


# Others of the catalog of constructs have their conditions in tests/test_rule_limits.py.
@pytest.mark.parametrize("name", ["shop", "shrink", *sweep(["citations", "options_book", "packed_norm", "sonar"])])
def test_the_finding_names_the_cure(name):
    code, words = FIRST[name]
    with open_trace(unpack(TRACES / f"{name}_ailing.sqlite.xz")) as trace:
        findings = evaluate_rules(trace, [code]).values()
    assert any(finding.severity == "critical" and words in finding.action for finding in findings)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in ALL_RULES else pytest.mark.slow) for name in FIRST]
)
def test_the_first_finding_names_the_cure(name):
    with open_trace(unpack(TRACES / f"{name}_ailing.sqlite.xz")) as trace:
        first = trace.diagnose().findings[0]
    code, words = FIRST[name]
    if code:
        assert (first.code, first.severity) == (code, "critical")
        assert words in first.action
    else:
        assert first.severity == "info"


# Of later sets: a share of the title, and of the cure.
LATER = {
    "clinic4/blur": ("large window", "convolve1d"),
    "clinic4/bridge": ("Matrix-vector products", "one matrix product"),
    "clinic4/cells": ("Integer keys", "end_bit"),
    "clinic4/circuit": ("sparse matrix is converted", "tocsr"),
    "clinic4/gauges": ("launched many times", "one more dimension of the grid"),
    "clinic4/portfolio": ("launched many times", "jax.vmap"),
    "clinic4/mixture": ("Experts", "grouped_mm"),
    "clinic4/relax": ("flag", "while_loop"),
    "clinic4/reverb": ("Convolutions", "FFT"),
    "clinic4/swarm": ("Huge arrays", "cdist"),
    "clinic5/asian": ("random generator", "before the loop"),
    "clinic5/causal": ("causal mask", "is_causal=True"),
    "clinic5/footage": ("default stream", "cudaMemsetAsync"),
    "clinic5/lander": ("permutation", "torch.randint"),
    "clinic5/ripple": ("CUDA graphs are built", "before the loop"),
    "clinic5/rumour": ("sparse matrix is sorted", "coalesce() once"),
    "clinic5/shelf": ("all rows of an embedding table", "sparse=True"),
    "clinic5/transfer": ("statistics are frozen", "requires_grad_(False)"),
    "clinic6/journal": ("one by one", "clip_grad_norm_"),
    "clinic6/mentor": ("launch overhead", "CUDA graph"),
    "clinic6/nebula": ("after each copy of results", "in CuPy"),
    "clinic6/novel": ("run again in the backward", "checkpoint"),
    "clinic6/parcels": ("after each copy of results", "torch.bincount"),
    "clinic6/parrot": ("normalized again", "remove_parametrizations"),
    "clinic6/proteins": ("gathered before layers", "before the gather"),
    "clinic6/quake": ("copies new data", "before the loop"),
    "clinic6/saga": ("before each attention", "index_copy_"),
    "clinic7/auditor": ("sorted again", "one call of cupy.percentile"),
    "clinic7/freight": ("computed again in each iteration", "before the loop"),
    "clinic7/glacier": ("launched many times", "associative_scan"),
    "clinic7/harbor": ("Overlapping boxes", "batched_nms once"),
    "clinic7/interpreter": ("read back one after another", "torch.topk once"),
    "clinic7/monsoon": ("as complex numbers", "rfft2"),
    "clinic7/pocket": ("unpacked again", "when the model is loaded"),
    "clinic7/reef": ("in FP64", "float32"),
    "clinic7/verdict": ("runs in FP32", "bfloat16"),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[] if name in {"clinic5/ripple", "clinic6/quake"} else pytest.mark.slow,
        )
        for name in LATER
    ],
)
def test_the_first_finding_names_the_cure_of_later_sets(name):
    folder, _, program = name.partition("/")
    with open_trace(unpack(REPOSITORY / "benchmarks" / folder / "traces" / f"{program}_ailing.sqlite.xz")) as trace:
        first = trace.diagnose().findings[0]
    title, cure = LATER[name]
    assert title in first.title
    assert cure in first.action
    assert first.severity == "critical"
