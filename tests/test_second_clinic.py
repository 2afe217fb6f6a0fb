"""The second clinic: programs written by somebody who did not know the rules, and their first findings."""

from __future__ import annotations

import lzma

import pytest
from command_line import REPOSITORY
from opening import open_trace

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


@pytest.mark.parametrize("name", FIRST)
def test_the_first_finding_names_the_cure(tmp_path, name):
    path = tmp_path / f"{name}.sqlite"
    path.write_bytes(lzma.decompress((TRACES / f"{name}_ailing.sqlite.xz").read_bytes()))
    with open_trace(path) as trace:
        first = trace.diagnose().findings[0]
    code, words = FIRST[name]
    if code:
        assert (first.code, first.severity) == (code, "critical")
        assert words in first.action
    else:
        assert first.severity == "info"


# Of the fourth set: a share of the title, and of the cure.
FOURTH = {
    "blur": ("large window", "convolve1d"),
    "bridge": ("Matrix-vector products", "one matrix product"),
    "cells": ("Integer keys", "end_bit"),
    "circuit": ("sparse matrix is converted", "tocsr"),
    "gauges": ("launched many times", "one more dimension of the grid"),
    "mixture": ("Experts", "grouped_mm"),
    "portfolio": ("launched many times", "jax.vmap"),
    "relax": ("flag", "while_loop"),
    "reverb": ("Convolutions", "FFT"),
    "swarm": ("Huge arrays", "cdist"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "blur" else pytest.mark.slow) for name in FOURTH]
)
def test_the_first_finding_names_the_cure_of_the_fourth_set(tmp_path, name):
    path = tmp_path / f"{name}.sqlite"
    traces = REPOSITORY / "benchmarks" / "clinic4" / "traces"
    path.write_bytes(lzma.decompress((traces / f"{name}_ailing.sqlite.xz").read_bytes()))
    with open_trace(path) as trace:
        first = trace.diagnose().findings[0]
    title, cure = FOURTH[name]
    assert title in first.title
    assert cure in first.action
    assert first.severity == "critical"
