"""Compare what `fusion` predicts with what was measured by `cases.sh`.

    python3 benchmarks/fusion/bounds.py OUTDIR [--held]

Prints a Markdown table of the cases at which one may look while the bounds are tuned; with --held, of the others. The
prediction is read off the trace of the unfused program, and multiplied by what a step takes without the profiler over
what it takes with it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import nsys_insight

BLOCKS = 4


def predicted(path: Path, kernels: int) -> tuple[float, dict[str, Any] | None]:
    """The wall of a step in µs, and the candidate that is the whole chain in every block; None if none is."""
    with nsys_insight.open(path) as trace:
        walls = {row["metric"]: row for row in trace.run("per-token").to_dicts()}
        rows = trace.run("fusion").to_dicts()
    whole = (row for row in rows if (row["kernel_count"], row["per_step"]) == (kernels, BLOCKS))
    chain = next((row for row in whole if not row["pattern"].startswith("GEMM")), None)
    return float(walls["wall_ns"]["median"]) / 1e3, chain


def main() -> None:
    folder, held = Path(sys.argv[1]), "--held" in sys.argv
    cases = json.loads((folder / "times.json").read_text())["us_per_step"]
    print("| case | as | profiled | alone | predicted, alone (µs) | measured, alone (µs) | within |")
    print("|---|---|---|---|---|---|---|")
    inside = asked = 0
    for name, case in cases.items():
        if case["held"] is not held:
            continue
        asked += 1
        wall, chain = predicted(folder / f"{name}.sqlite", case["kernels"])
        alone = case["before"]["median"]
        saved = alone - case["after"]["median"]
        head = f"| {name} | {chain['pattern'] if chain else ''} | {wall:.0f} | {alone:.0f}"
        if chain is None:
            print(f"{head} | not found | {saved:.0f} | **no** |")
            continue
        low, high = (chain[f"saved_{end}_ns"] / 1e3 * alone / wall for end in ("low", "high"))
        within = low <= saved <= high
        inside += within
        word = "yes" if within else "**no**"
        print(f"{head} | {low:.0f} to {high:.0f} | {saved:.0f} | {word} |")
    print(f"\n{inside} of {asked}")


if __name__ == "__main__":
    main()
