"""Output of NVIDIA's own tool, `nsys stats --format csv --timeunit nsec`, for the available traces."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
TRACES_AND_OUTPUTS = (
    (REPOSITORY / "sample_traces", REPOSITORY / "tests" / "data" / "nsys_stats"),
    (REPOSITORY.parent / "shared" / "traces", REPOSITORY.parent / "shared" / "traces" / "nsys_stats"),
)


def each_trace_with(report):
    """Parametrize a test over the traces with this output of nsys: `trace`, and the output's file `nsys_output`.

    Traces outside the repository are a sweep.
    """
    cases = {}
    for traces, reports in TRACES_AND_OUTPUTS:
        for path in sorted(reports.glob(f"*.{report}.csv")):
            name = path.name.removesuffix(f".{report}.csv")
            trace = traces / f"{name}.sqlite"
            if trace.is_file():
                marks = () if traces.name == "sample_traces" else pytest.mark.sweep
                cases.setdefault(name.removesuffix(".25"), pytest.param(trace, path, id=name, marks=marks))
    return pytest.mark.parametrize(("trace", "nsys_output"), cases.values())


def read_rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def equals_printed(value, text):
    """Whether a number is the printed one, which is rounded to one decimal. Nothing or 0.0 is printed for None."""
    return (value or 0) == pytest.approx(float(text or 0), abs=0.0501, rel=1e-12)
