"""Names that nsys records mangled: those of OpenACC and OpenMP in C++."""

from __future__ import annotations

import pytest
from opening import open_trace
from synthetic import Trace

NAMES = {
    "_Z13stepXY_21_gpui": "stepXY_21_gpu(int)",
    "_Z18stepXY_21_gpu__redPdS_i": "stepXY_21_gpu__red(double *, double *, int)",
    "_Z7add_gpuPKfPfm": "add_gpu(const float *, float *, unsigned long)",
    "_Z1fPKdS0_v": "_Z1fPKdS0_v",  # void and other parameters: not valid
    "_ZN5Field14stepXY_21_gpuEv": "_ZN5Field14stepXY_21_gpuEv",  # a member: not changed
    "_Z9short": "_Z9short",
    "main_24_gpu": "main_24_gpu",
}


@pytest.fixture
def trace(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for name in NAMES:
        host.launch(name, runs=10_000)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        yield session


def test_names_of_plain_functions_are_demangled(trace):
    assert {row["name"] for row in trace.sql("SELECT name FROM kernels").to_dicts()} == set(NAMES.values())


def test_openacc_in_cpp_is_recognized(trace):
    kernels = trace.sql("SELECT name, provenance FROM kernel_names").to_dicts()
    names = {row["name"] for row in kernels if row["provenance"] == "OpenACC"}
    assert names == {name for name in NAMES.values() if "_21_gpu" in name or name == "main_24_gpu"}
