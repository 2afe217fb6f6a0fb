"""Compare the predictions of `fusion` with the measurements of `trial.sh`.

    python3 benchmarks/fusion/compare.py OUTDIR

Prints a Markdown table for each mode. The prediction comes from the trace of the unfused step. It is compared with the
wall time of the profiled variants. Scaled by the ratio of the step times without and with the profiler, it is compared
with plain.json.
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


def read_wall_us(path: Path) -> float:
    with nsys_insight.open(path) as trace:
        rows = {row["metric"]: row for row in trace.run("per-token").to_dicts()}
    return float(rows["wall_ns"]["median"]) / 1e3


def read_predictions(path: Path) -> dict[str, tuple[float, float]]:
    """Return the predicted saving of each known pattern in µs, low and high, for its most frequent form."""
    bounds_by_pattern: dict[str, tuple[float, float]] = {}
    with nsys_insight.open(path) as trace:
        rows: list[dict[str, Any]] = trace.run("fusion").to_dicts()
    for row in sorted(rows, key=lambda row: -row["per_step"]):
        bounds_by_pattern.setdefault(row["pattern"], (row["saved_low_ns"] / 1e3, row["saved_high_ns"] / 1e3))
    return bounds_by_pattern


def main() -> None:
    folder = Path(sys.argv[1])
    times = json.loads((folder / "plain.json").read_text())["us_per_token"]
    plain = {name: timing["median"] for name, timing in times.items()}
    for mode in ("eager", "graph"):
        base = read_wall_us(folder / f"{mode}_base.sqlite")
        bounds = read_predictions(folder / f"{mode}_base.sqlite")
        unprofiled = plain[f"{mode}_base"]
        print(f"\n{mode}: {base:.0f} µs per token under nsys, {unprofiled:.0f} µs without\n")
        print("| fused | predicted, profiled | measured, profiled | predicted, alone | measured, alone | within |")
        print("|---|---|---|---|---|---|")
        for variant, patterns in VARIANTS.items():
            low, high = (sum(bounds.get(name, (0.0, 0.0))[end] for name in patterns) for end in (0, 1))
            profiled_saving = base - read_wall_us(folder / f"{mode}_{variant}.sqlite")
            unprofiled_saving, ratio = unprofiled - plain[f"{mode}_{variant}"], unprofiled / base
            is_within = "yes" if low * ratio <= unprofiled_saving <= high * ratio else "no"
            print(
                f"| {variant} | {low:.0f} to {high:.0f} | {profiled_saving:.0f}"
                f" | {low * ratio:.0f} to {high * ratio:.0f} | {unprofiled_saving:.0f} | {is_within} |"
            )


if __name__ == "__main__":
    main()
