"""Compare what `fusion` predicts with what was measured by `trial.sh`.

    python3 benchmarks/fusion/compare.py OUTDIR

Prints a Markdown table for each mode. The prediction is read off the trace of the step as it is. It is compared with
the wall of the profiled variants, and, times the ratio of the step without and with the profiler, with plain.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import nsys_insight

VARIANTS = {
    "norm": ["RMSNorm"],
    "rope": ["rope"],
    "silu_mul": ["SwiGLU"],
    "residual_norm": ["residual + RMSNorm"],
    "all": ["rope", "SwiGLU", "residual + RMSNorm"],
}


def wall_us(path: Path) -> float:
    with nsys_insight.open(path) as trace:
        rows = {row["metric"]: row for row in trace.run("per-token").to_dicts()}
    return float(rows["wall_ns"]["median"]) / 1e3


def predicted(path: Path) -> dict[str, tuple[float, float]]:
    """What each known pattern saves, in µs: the most frequent way in which it comes."""
    found: dict[str, tuple[float, float]] = {}
    with nsys_insight.open(path) as trace:
        rows: list[dict[str, Any]] = trace.run("fusion").to_dicts()
    for row in sorted(rows, key=lambda row: -row["per_step"]):
        found.setdefault(row["pattern"], (row["saved_low_ns"] / 1e3, row["saved_high_ns"] / 1e3))
    return found


def main() -> None:
    folder = Path(sys.argv[1])
    times = json.loads((folder / "plain.json").read_text())["us_per_token"]
    plain = {name: each["median"] for name, each in times.items()}
    for mode in ("eager", "graph"):
        base = wall_us(folder / f"{mode}_base.sqlite")
        bounds = predicted(folder / f"{mode}_base.sqlite")
        alone = plain[f"{mode}_base"]
        print(f"\n{mode}: {base:.0f} µs a token under nsys, {alone:.0f} µs without\n")
        print("| fused | predicted, profiled | measured, profiled | predicted, alone | measured, alone | within |")
        print("|---|---|---|---|---|---|")
        for variant, patterns in VARIANTS.items():
            low, high = (sum(bounds.get(name, (0.0, 0.0))[end] for name in patterns) for end in (0, 1))
            profiled = base - wall_us(folder / f"{mode}_{variant}.sqlite")
            saved, ratio = alone - plain[f"{mode}_{variant}"], alone / base
            within = "yes" if low * ratio <= saved <= high * ratio else "no"
            print(
                f"| {variant} | {low:.0f} to {high:.0f} | {profiled:.0f}"
                f" | {low * ratio:.0f} to {high * ratio:.0f} | {saved:.0f} | {within} |"
            )


if __name__ == "__main__":
    main()
