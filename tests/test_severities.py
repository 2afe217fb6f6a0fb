"""Severities and the word "healthy" over all traces of the repository, and those of the shared folder."""

from __future__ import annotations

import pytest
from command_line import REPOSITORY
from opening import open_trace, unpack
from real_traces import FOREIGN, MORE_OF_SAMPLES, SAMPLES, path_of

CLINICS = sorted((REPOSITORY / "benchmarks").glob("clinic*/traces/*.sqlite.xz"))
# A kernel that no library has, and a healthy program.
FAST = ("reactor_ailing", "basin_ailing")
TRACES = [*CLINICS, *SAMPLES, *FOREIGN, *map(path_of, MORE_OF_SAMPLES)]


def name_of(path):
    return path.name.partition(".sqlite")[0]


def list_cases():
    for path in TRACES:
        yield pytest.param(path, marks=[] if name_of(path) in FAST else pytest.mark.slow, id=name_of(path))


@pytest.mark.parametrize("path", list(list_cases()))
def test_nearly_all_of_a_step_is_no_info_and_healthy_runs_are_efficient(path):
    with open_trace(unpack(path) if path.suffix == ".xz" else path) as trace:
        diagnosis = trace.diagnose()
        coverage = trace.dicts("FROM construct_coverage")
    if diagnosis.status == "healthy" or name_of(path) == "basin_ailing":
        assert all(finding.severity == "info" for finding in diagnosis.findings)
        assert coverage[0]["efficient_pct"] >= 80
    else:
        assert not [
            (finding.code, finding.wall_pct)
            for finding in diagnosis.findings
            if finding.severity == "info" and finding.share_of == "step" and (finding.wall_pct or 0) >= 95
        ]
