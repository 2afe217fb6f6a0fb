"""Which loop of a program is its step, and how certain that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

# The step is a loop with this share of the GPU time, most of whose iterations have about as many operations.
MIN_GPU_SHARE, MIN_REGULAR = 0.4, 0.5
# Without such a loop, it is a long one with most of the GPU time, in which only the lengths of inner loops vary.
MIN_VARYING_ITERATIONS, MIN_VARYING_GPU_SHARE, MIN_SAME_STRUCTURE = 10, 0.6, 0.9
# A loop of CUDA graphs has this share of its GPU time in them.
MIN_GRAPH_SHARE = 0.5
# High and medium confidence: the minimum number of iterations, and the minimum shares of the GPU time and of regular
# iterations.
HIGH, MEDIUM = (5, 0.8, 0.9), (3, 0.6, 0.7)


def choose_loop(loops: Sequence[Any], method: str) -> Any | None:
    """Return the outermost loop that is the step; None if no loop holds enough of the GPU time.

    A loop that launches nothing uploads data or weights before the first step.

    Args:
        loops: Rows of `loops.sql`.
        method: auto; or graph or sequence if the user requested it: then the loop need not hold much GPU time.
    """
    outermost = [loop for loop in loops if loop.depth == 0]
    if method != "auto":
        return next((loop for loop in outermost if method == "sequence" or loop.graph_share > 0), None)
    large = [loop for loop in outermost if loop.gpu_share >= MIN_GPU_SHARE and loop.launches > 0]
    regular = (loop for loop in large if loop.regular_share >= MIN_REGULAR)
    varying = (
        loop
        for loop in large
        if loop.iterations >= MIN_VARYING_ITERATIONS
        and loop.gpu_share >= MIN_VARYING_GPU_SHARE
        and loop.structure_share >= MIN_SAME_STRUCTURE
    )
    return next(regular, None) or next(varying, None)


def judge_loop(loop: Any) -> str:
    """Return how certain it is that a loop is the step: high, medium or low.

    An iteration with a single launch may be a part of a step: its confidence is at most medium, unless it is a graph.
    """
    levels = (("high", HIGH), ("medium", MEDIUM))
    is_single_launch = loop.launches <= 1 and loop.graph_share < MIN_GRAPH_SHARE
    for confidence, (iterations, gpu_share, regular) in levels[1:] if is_single_launch else levels:
        is_certain = loop.gpu_share >= gpu_share and loop.regular_share >= regular
        if loop.iterations >= iterations and is_certain:
            return confidence
    return "low"


def describe_rejection(loop: Any) -> str:
    """Describe a loop that is not the step, and why it is not."""
    if loop.gpu_share < MIN_GPU_SHARE:
        return f"{describe_loop(loop)}, less than {MIN_GPU_SHARE:.0%}"
    if not loop.launches:
        reason = "they launch nothing"
    elif loop.regular_share < MIN_REGULAR:
        reason = f"less than {MIN_REGULAR:.0%} of them have about the same number of operations"
    else:
        reason = "steps that are cut at them have no duration"
    return f"{describe_loop(loop)}, but {reason}"


def describe_loop(loop: Any) -> str:
    """Describe a loop: its iterations, and its share of the GPU time."""
    share = 100 * loop.gpu_share
    amount = f"{share:.1f}%" if share >= 0.1 else "less than 0.1%"
    operations = f"{loop.operations:.0f} operation{'' if loop.operations == 1 else 's'}"
    return f"{loop.iterations} iterations of {operations} hold {amount} of the GPU time"
