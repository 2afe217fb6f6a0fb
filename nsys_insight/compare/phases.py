"""The phases of runs (prefill, decode by batch size, both in one step) and their requests, compared each on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.compare.noise import Difference, Samples
from nsys_insight.compare.runs import HEADLINE, pooled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsys_insight.compare.runs import Run

# The name of a run's requests among its phases, and their metrics.
REQUESTS = "requests"
LATENCIES = {"ttft_ns": "time to first token", "itl_ns": "inter-token latency"}
PROMPT = "prompt_tokens"
# Prompts whose mean lengths differ by more are different work (a choice).
PROMPTS_ALIKE = 0.02


def pairs(before: Sequence[Run], after: Sequence[Run], *, by_run: bool) -> Iterator[tuple[str, str, Difference]]:
    """Pair what both sides measured of a phase: its name, the metric, and the samples of both.

    A prefill of other prompts is left out, for it is other work.
    """
    sides = (before, after)
    for name in dict.fromkeys(name for side in sides for run in side for name in run.phases):
        if not all(name in run.phases for side in sides for run in side):
            continue
        found = [_pooled([run.phases[name] for run in side], by_run=by_run) for side in sides]
        prompts = [side[PROMPT].mean for side in found if PROMPT in side]
        if len(prompts) == 1 or (prompts and abs(prompts[1] - prompts[0]) > PROMPTS_ALIKE * max(prompts)):
            continue
        for metric in found[0]:
            if metric != PROMPT and metric in found[1]:
                yield name, metric, Difference(found[0][metric], found[1][metric])


def _pooled(runs: Sequence[dict[str, Samples]], *, by_run: bool) -> dict[str, Samples]:
    """The metrics that all runs of a side measured."""
    found = {metric: pooled([run.get(metric) for run in runs], by_run=by_run) for metric in runs[0]}
    return {metric: samples for metric, samples in found.items() if samples}


def left_out(before: Sequence[Run], after: Sequence[Run]) -> list[str]:
    """The phases that are not compared: only one side has them, or its prompts are others."""
    names = dict.fromkeys(name for run in (*before, *after) for name in run.phases)
    compared = {name for name, _, _ in pairs(before, after, by_run=False)}
    return [name for name in names if name not in compared]


def decides(name: str, metric: str) -> bool:
    """Whether a row says that a phase got faster or slower."""
    return metric in LATENCIES if name == REQUESTS else metric == HEADLINE


def called(name: str, metric: str) -> str:
    """What a row is about, in words."""
    return LATENCIES[metric] if name == REQUESTS else name


def sentence(faster: Iterable[str], slower: Iterable[str]) -> str | None:
    """Say which phases got faster and which slower; None where none did. Each is given with its figures."""
    gained, lost = "; ".join(faster), "; ".join(slower)
    if gained and lost:
        return f"one phase got faster at the cost of another: {gained} got faster, but {lost} got slower"
    return f"phases that got slower: {lost}" if lost else f"phases that got faster: {gained}" if gained else None
