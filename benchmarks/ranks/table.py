"""Compare what `diagnose` finds in the runs of train.py with what was planted and measured.

table.py RESULTS        a folder with the exports of capture.sh and its times.jsonl; prints Markdown
"""

import json
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

import nsys_insight
from nsys_insight.diagnose.findings import Finding

PLANTED = {
    "late": "rank 2 sleeps 10 ms in steps 3, 7, 11, 15",
    "larger": "rank 1: twice the batch",
    "tensor_larger": "ranks 2, 3: twice the batch",
    "pipeline_larger": "rank 1: twice the layers",
    "experts_larger": "the expert of rank 1: twice the tokens of another",
    "healthy": "nothing",
}
LATE_EVERY = 4


def read_steps(path: Path) -> dict[tuple[str, bool], list[list[float]]]:
    """Return the times of the steps of all ranks in ms, by run and whether nsys recorded."""
    steps = defaultdict(list)
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if "step_ms" in row:
            steps[row["name"], row["profiled"]].append(row["step_ms"])
    return steps


def describe_steps(ranks: list[list[float]], *, has_late_steps: bool) -> str:
    """Return the median step, and that of the late steps."""
    first = LATE_EVERY - 1
    median = statistics.median(ms for rank in ranks for step, ms in enumerate(rank) if step % LATE_EVERY != first)
    late_median = statistics.median(ms for rank in ranks for ms in rank[first::LATE_EVERY])
    delay = f", late {late_median:.2f} (+{late_median - median:.2f})"
    return f"{median:.2f}{delay if has_late_steps else ''}"


def describe_saving(finding: Finding) -> str:
    """Return the code of a finding and its saving."""
    if finding.recoverable_ns is None:
        return finding.code
    low_ms, high_ms = (finding.saving_low_ns or 0) / 1e6, finding.recoverable_ns / 1e6
    return f"{finding.code}, {low_ms:.2f} to {high_ms:.2f} ms"


def main(folder: Path) -> None:
    steps = read_steps(folder / "times.jsonl")
    print("| run | planted | step without nsys, ms | step with nsys, ms | found | first finding | time |")
    print("|---|---|---|---|---|---|---|")
    for name in sorted({name for name, _ in steps}):
        paths = sorted(folder.glob(f"{name}_rank*.sqlite"))
        if not paths:
            continue
        start = time.perf_counter()
        with nsys_insight.open(paths, use_cache=False) as trace:
            diagnosis = trace.diagnose()
        seconds = time.perf_counter() - start
        variant = name.rpartition("_")[2]
        columns = [
            PLANTED.get(name, PLANTED.get(variant, "3, 4, 4, 4 layers")),
            *(describe_steps(steps[name, has_nsys], has_late_steps=variant == "late") for has_nsys in (False, True)),
            diagnosis.run.sentence.partition("ranks: ")[2] if diagnosis.run else "",
            describe_saving(diagnosis.findings[0]),
            f"{seconds:.1f} s",
        ]
        print(f"| {name} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
