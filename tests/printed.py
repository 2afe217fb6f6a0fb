"""What NVIDIA's own tool printed: `nsys stats --format csv --timeunit nsec` for traces that are at hand."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PLACES = (
    (REPOSITORY / "sample_traces", REPOSITORY / "tests" / "data" / "nsys_stats"),
    (REPOSITORY.parent / "shared" / "traces", REPOSITORY.parent / "shared" / "traces" / "nsys_stats"),
)


def traces_with(report):
    """Parametrise a test over the traces for which the report was printed: `trace` and what it said, `printed`.

    Those that are not of the repository are a sweep.
    """
    found = {}
    for traces, reports in PLACES:
        for path in sorted(reports.glob(f"*.{report}.csv")):
            name = path.name.removesuffix(f".{report}.csv")
            trace = traces / f"{name}.sqlite"
            if trace.is_file():
                marks = () if traces.name == "sample_traces" else pytest.mark.sweep
                found.setdefault(name.removesuffix(".25"), pytest.param(trace, path, id=name, marks=marks))
    return pytest.mark.parametrize(("trace", "printed"), found.values())


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def same(ours, printed):
    """Whether a number is the printed one, which is rounded to one decimal; nothing is printed for none, or 0.0."""
    return (ours or 0) == pytest.approx(float(printed or 0), abs=0.0501, rel=1e-12)
