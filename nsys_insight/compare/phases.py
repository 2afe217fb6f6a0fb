"""Compare the phases of runs (prefill, decode by batch size, both in one step) and their requests, each separately."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.compare.noise import Difference, Samples
from nsys_insight.compare.runs import HEADLINE, Run, pool_samples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


# The name of a run's requests among its phases, and their metrics.
REQUESTS = "requests"
LATENCIES = {"ttft_ns": "time to first token", "itl_ns": "inter-token latency (pauses and warm-up included)"}
SERVING_PHASES = {"prefill", "decode", "mixed"}
PROMPT = "prompt_tokens"
# The steps of a run are those of one phase if it has at least this share of them.
MAIN_PHASE_SHARE = 0.9
# Prompts whose mean lengths differ by more than this share are different work. The value is a choice.
PROMPTS_TOLERANCE = 0.02


def pair_phases(before: Sequence[Run], after: Sequence[Run], *, by_run: bool) -> Iterator[tuple[str, str, Difference]]:
    """Yield the phases that both sides measured: name, metric, and the samples of both sides.

    A prefill of prompts with another length is left out: it is different work.
    """
    sides = (before, after)
    for name in dict.fromkeys(name for side in sides for run in side for name in run.phases):
        if not all(name in run.phases for side in sides for run in side):
            continue
        metrics_by_side = [_pool_metrics([run.phases[name] for run in side], by_run=by_run) for side in sides]
        prompts = [side[PROMPT].mean for side in metrics_by_side if PROMPT in side]
        if len(prompts) == 1 or (prompts and abs(prompts[1] - prompts[0]) > PROMPTS_TOLERANCE * max(prompts)):
            continue
        for metric in metrics_by_side[0]:
            if metric != PROMPT and metric in metrics_by_side[1]:
                yield name, metric, Difference(metrics_by_side[0][metric], metrics_by_side[1][metric])


def _pool_metrics(runs: Sequence[dict[str, Samples]], *, by_run: bool) -> dict[str, Samples]:
    """Pool the metrics that all runs of a side measured."""
    samples_by_metric = {metric: pool_samples([run.get(metric) for run in runs], by_run=by_run) for metric in runs[0]}
    return {metric: samples for metric, samples in samples_by_metric.items() if samples}


def list_unpaired(before: Sequence[Run], after: Sequence[Run]) -> list[str]:
    """List the phases that are not compared: only one side has them, or the prompts differ in length."""
    names = dict.fromkeys(name for run in (*before, *after) for name in run.phases)
    compared_names = {name for name, _, _ in pair_phases(before, after, by_run=False)}
    return [name for name in names if name not in compared_names]


def is_deciding(name: str, metric: str) -> bool:
    """Return whether a row decides if a phase got faster or slower."""
    return metric in LATENCIES if name == REQUESTS else metric == HEADLINE


def is_serving(name: str) -> bool:
    """Return whether a phase is one of a server: prefill, decode, or both in one step, of any batch size."""
    return name.partition(",")[0] in SERVING_PHASES


def find_main_phase(run: Run) -> str | None:
    """Return the phase of a server, with its batch size, that nearly all steps of a run are of; None without one."""
    counts = {
        name: walls.steps_per_value * len(walls.values)
        for name, metrics in run.phases.items()
        if is_serving(name) and (walls := metrics.get(HEADLINE))
    }
    name = max(counts, key=lambda name: counts[name], default=None)
    return name if name and counts[name] >= MAIN_PHASE_SHARE * run.count else None


def label_phase(name: str, metric: str) -> str:
    """Return the label of a row."""
    return LATENCIES[metric] if name == REQUESTS else name


def describe_phases(faster: Iterable[str], slower: Iterable[str]) -> str | None:
    """Say which phases got faster and which slower; None if no phase changed. Each text is a phase with its figures."""
    faster_text, slower_text = "; ".join(faster), "; ".join(slower)
    if faster_text and slower_text:
        return f"One phase is faster at the cost of another. Faster: {faster_text}. Slower: {slower_text}"
    return f"Slower: {slower_text}" if slower_text else f"Faster: {faster_text}" if faster_text else None
