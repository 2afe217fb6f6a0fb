"""Compare the predictions of `fusion` with the measurements of `cases.sh`.

    python3 benchmarks/fusion/bounds.py OUTDIR [--held]

Prints a Markdown table of the cases for tuning the bounds, or of the held-out cases with --held. The prediction comes
from the trace of the unfused program. It is scaled by the ratio of the step times without and with the profiler.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import nsys_insight

BLOCKS = 4


def read_prediction(path: Path, kernels: int) -> tuple[float, dict[str, Any] | None]:
    """Return the step time in µs, and the candidate that covers the full chain in every block; None without one."""
    with nsys_insight.open(path) as trace:
        walls = {row["metric"]: row for row in trace.run("per-token").to_dicts()}
        rows = trace.run("fusion").to_dicts()
    full_chains = (row for row in rows if (row["kernel_count"], row["per_step"]) == (kernels, BLOCKS))
    chain = next((row for row in full_chains if not row["pattern"].startswith("GEMM")), None)
    return float(walls["wall_ns"]["median"]) / 1e3, chain


def main() -> None:
    folder, is_held_out = Path(sys.argv[1]), "--held" in sys.argv
    cases = json.loads((folder / "times.json").read_text())["us_per_step"]
    print("| case | as | profiled | alone | predicted, alone (µs) | measured, alone (µs) | within |")
    print("|---|---|---|---|---|---|---|")
    inside_count = case_count = 0
    for name, case in cases.items():
        if case["held"] is not is_held_out:
            continue
        case_count += 1
        wall, chain = read_prediction(folder / f"{name}.sqlite", case["kernels"])
        unprofiled = case["before"]["median"]
        measured_saving = unprofiled - case["after"]["median"]
        head = f"| {name} | {chain['pattern'] if chain else ''} | {wall:.0f} | {unprofiled:.0f}"
        if chain is None:
            print(f"{head} | not found | {measured_saving:.0f} | **no** |")
            continue
        low, high = (chain[f"saved_{end}_ns"] / 1e3 * unprofiled / wall for end in ("low", "high"))
        is_within = low <= measured_saving <= high
        inside_count += is_within
        word = "yes" if is_within else "**no**"
        print(f"{head} | {low:.0f} to {high:.0f} | {measured_saving:.0f} | {word} |")
    print(f"\n{inside_count} of {case_count}")


if __name__ == "__main__":
    main()
