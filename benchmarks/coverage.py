#!/usr/bin/env python3
"""Measure how much of the GPU time the catalog of constructs names and judges.

coverage.py [--traces] [FOLDER ...]: traces in benchmarks/*/traces and sample_traces, or in folders of other traces.
"""

from __future__ import annotations

import lzma
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from nsys_insight import Trace

REPOSITORY = Path(__file__).parents[1]
FOLDERS = [*sorted((REPOSITORY / "benchmarks").glob("*/traces")), REPOSITORY / "sample_traces"]


class Coverage(NamedTuple):
    """GPU time of a step, in ns, added up over traces."""

    traces: float = 0
    gpu_ns: float = 0.0
    named_ns: float = 0.0
    unnamable_ns: float = 0.0  # in hand-written kernels, and in graphs that are one operation
    judged_ns: float = 0.0
    named_traces: float = 0  # traces in which something is named
    judged_shares: float = 0.0  # of the named time of each trace, added up

    def __add__(self, other: object) -> Coverage:
        """Add the times of two corpora."""
        if not isinstance(other, Coverage):
            return NotImplemented
        traces, *times = (left + right for left, right in zip(self, other, strict=True))
        return Coverage(int(traces), *times)


def list_traces(folder: Path) -> list[Path]:
    """List the traces of a folder; of a pair of programs, the ailing one."""
    paths = [path for path in sorted(folder.iterdir()) if path.name.endswith((".sqlite", ".sqlite.xz"))]
    return [path for path in paths if "_cured" not in path.name]


def measure(path: Path) -> Coverage:
    """Measure the coverage of a trace."""
    with tempfile.TemporaryDirectory() as scratch:
        if path.suffix == ".xz":
            unpacked = Path(scratch) / path.stem
            unpacked.write_bytes(lzma.decompress(path.read_bytes()))
            path = unpacked
        with Trace(path, use_cache=False) as trace:
            rows = trace.dicts("FROM construct_coverage")
    if not rows or not rows[0]["gpu_ns"]:
        return Coverage()
    (row,) = rows
    gpu_ns, named_ns = row["gpu_ns"], row["gpu_ns"] * row["named_pct"] / 100
    judged_share = (row["judged_pct"] or 0) / 100
    return Coverage(
        traces=1,
        gpu_ns=gpu_ns,
        named_ns=named_ns,
        unnamable_ns=gpu_ns * (row["hand_written_pct"] + row["graph_pct"]) / 100,
        judged_ns=named_ns * judged_share,
        named_traces=int(named_ns > 0),
        judged_shares=judged_share,
    )


def main(words: list[str]) -> None:
    """Print a row for each folder, and for each trace with --traces."""
    folders = [Path(word) for word in words if not word.startswith("--")] or FOLDERS
    totals: dict[str, Coverage] = defaultdict(Coverage)
    print("| traces | of | named | named share of what can be named | judged share of named time | mean |")
    print("|---|---|---|---|---|---|")
    for folder in folders:
        for path in list_traces(folder):
            coverage = measure(path)
            name = folder.parent.name if folder.name == "traces" else folder.name
            totals[name] += coverage
            if "--traces" in words and coverage.traces:
                print_row(path.name.partition(".sqlite")[0], coverage)
    for name, coverage in totals.items():
        print_row(name, coverage)


def print_row(name: str, coverage: Coverage) -> None:
    """Print a row of the table: what is named of all, and what is judged of what is named."""
    # What is left of a difference of equal numbers is no time.
    known_ns = coverage.gpu_ns - coverage.unnamable_ns if coverage.named_ns else 0.0
    shares = [
        (coverage.named_ns, coverage.gpu_ns),
        (coverage.named_ns, known_ns),
        (coverage.judged_ns, coverage.named_ns),
        (coverage.judged_shares, coverage.named_traces),
    ]
    cells = [f"{100 * part / total:.0f}%" if total else "-" for part, total in shares]
    print(f"| {name} | {coverage.traces:.0f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
