"""Which loop of a program is its step, and how certain that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

# The step is a loop with this share of the GPU time, most of whose iterations have about as many operations.
MIN_GPU_SHARE, MIN_REGULAR = 0.4, 0.5
# Uploads and the setup of a generator or of tables run once, and may take longer than a short run of the program: a
# loop with most of the launches is the step with this share of the GPU time too. It breaks for a program whose main
# work is one long kernel among many short ones, such as a search after a sweep.
MIN_LAUNCH_SHARE, MIN_GPU_SHARE_OF_LAUNCHES = 0.75, 0.2
# Without such a loop, it is a long one with most of the GPU time, in which only the lengths of inner loops vary.
MIN_VARYING_ITERATIONS, MIN_VARYING_GPU_SHARE, MIN_SAME_STRUCTURE = 10, 0.6, 0.9
# A loop of CUDA graphs has this share of its GPU time in them.
MIN_GRAPH_SHARE = 0.5
# High and medium confidence: the minimum number of iterations, and the minimum shares of the GPU time and of regular
# iterations.
HIGH, MEDIUM = (5, 0.8, 0.9), (3, 0.6, 0.7)
# High confidence: this many hints more than for the level around it or the level inside (`facts/loops/evidence.py`).
# It breaks where the hints are wrong together, such as for a solver that reads its residual back in each iteration.
CLEAR_WEIGHT = 3
# A part with one call of attention and at most this number of launches is that call; with more, it is a layer, whose
# projections and norms take more. It breaks for a layer that is fused into a few kernels.
MAX_LAUNCHES_OF_A_CALL = 5


def choose_loop(loops: Sequence[Any], method: str) -> Any | None:
    """Return the loop that is the step; None if no loop holds enough of the GPU time.

    It is an outermost loop, unless the rest of its iterations only interrupts a loop inside of it. A loop that launches
    nothing uploads data or weights before the first step.

    Args:
        loops: Rows of `loops.sql`.
        method: auto; or graph or sequence if the user requested it: then the loop need not hold much GPU time.
    """
    outermost = [loop for loop in loops if loop.depth == 0]
    if method != "auto":
        return next((loop for loop in outermost if method == "sequence" or loop.graph_share > 0), None)
    candidates = [_descend(loop, loops) for loop in outermost]
    large = [loop for loop in candidates if _is_large(loop) and loop.launches > 0]
    regular = (loop for loop in large if loop.regular_share >= MIN_REGULAR)
    varying = (
        loop
        for loop in large
        if loop.iterations >= MIN_VARYING_ITERATIONS
        and loop.gpu_share >= MIN_VARYING_GPU_SHARE
        and loop.structure_share >= MIN_SAME_STRUCTURE
    )
    return next(regular, None) or next(varying, None)


def _is_large(loop: Any) -> bool:
    """Return whether a loop is the main work of the program, by its GPU time or by its launches."""
    has_launches = loop.launch_share >= MIN_LAUNCH_SHARE and loop.gpu_share >= MIN_GPU_SHARE_OF_LAUNCHES
    return bool(has_launches or loop.gpu_share >= MIN_GPU_SHARE)


def _descend(loop: Any, loops: Sequence[Any]) -> Any:
    """Return the loop inside of a loop that the rest of it only interrupts, at any depth; the loop itself if none."""
    inner = [other for other in loops if other.parent == loop.loop and other.launches > 0]
    best = min(inner, key=lambda other: other.parent_weight, default=None)
    return loop if best is None or best.parent_weight >= 0 else _descend(best, loops)


def find_rival(loop: Any, loops: Sequence[Any]) -> Any | None:
    """Return the level that is also likely to be the step, around a loop or inside of it; None if the loop is clear."""
    rivals = [(other.parent_weight, other) for other in loops if other.parent == loop.loop and other.launches > 0]
    rivals += [(-loop.parent_weight, other) for other in loops if other.loop == loop.parent]
    weight, rival = min(rivals, key=lambda rival: rival[0], default=(CLEAR_WEIGHT, None))
    return rival if weight < CLEAR_WEIGHT else None


def is_marked(loop: Any) -> bool:
    """Return whether something marks the iterations of a loop as steps. Others may be parts of a step."""
    return bool(loop.marks > 0 or loop.graph_share >= MIN_GRAPH_SHARE)


def is_cut_by_steps(loop: Any) -> bool:
    """Return whether the interruptions of an outermost loop look like the ends of steps that have it inside."""
    return bool(loop.parent is None and loop.parent_weight is not None and loop.parent_weight > 0)


def judge_loop(loop: Any, loops: Sequence[Any]) -> str:
    """Return how certain it is that a loop is the step: high, medium or low.

    It is at most medium if another level of the nest is likely too, or if nothing marks the iterations: they may be
    parts of a step. An iteration with a single launch may be one too, unless it is a graph.
    """
    levels = (("high", HIGH), ("medium", MEDIUM))
    is_single_launch = loop.launches <= 1 and loop.graph_share < MIN_GRAPH_SHARE
    if is_cut_by_steps(loop):
        return "low"
    is_doubtful = is_single_launch or not is_marked(loop) or find_rival(loop, loops) is not None
    for confidence, (iterations, gpu_share, regular) in levels[1:] if is_doubtful else levels:
        is_certain = loop.gpu_share >= gpu_share and loop.regular_share >= regular
        if loop.iterations >= iterations and is_certain:
            return confidence
    return "low"


def name_unit(loop: Any, loops: Sequence[Any]) -> str:
    """Return what an iteration is called: step, unless it is probably a part of one."""
    is_inner = any(other.loop == loop.parent for other in loops) and find_rival(loop, loops) is not None
    is_interrupted = loop.parent is None and loop.parent_weight is not None
    is_part = is_inner or is_cut_by_steps(loop)
    is_part = is_part or (not is_marked(loop) and (is_interrupted or loop.attention_calls == 1))
    if not is_part:
        return "step"
    if loop.attention_calls != 1:
        return "iteration"
    return "call of attention" if loop.launches <= MAX_LAUNCHES_OF_A_CALL else "layer"


def describe_doubt(loop: Any, loops: Sequence[Any]) -> str | None:
    """Describe which other level may be the step; None if the level is clear."""
    rival = find_rival(loop, loops)
    if rival is not None and rival.loop == loop.parent:
        return f"{loop.per_parent:.0f} of these are in each iteration of loop {rival.loop}, which may be the step"
    if is_cut_by_steps(loop):
        return "what comes between them looks like the ends of steps that consist of several"
    if rival is not None:
        return f"each has {rival.per_parent:.0f} iterations of loop {rival.loop}, which may be the step"
    return None if is_marked(loop) else "no input, result or wait marks them, so they may be parts of a step"


def describe_rejection(loop: Any) -> str:
    """Describe a loop that is not the step, and why it is not."""
    if not _is_large(loop):
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
