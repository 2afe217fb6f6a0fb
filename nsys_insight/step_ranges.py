"""Steps told by an NVTX range that repeats and holds the GPU work."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# A name marks steps if it repeats so often, and if four fifths of the GPU time that is launched from its first to its
# last range is launched inside, which is a good part of all.
REPEATS = 3
INSIDE, OF_ALL = 0.8, 0.3
# Numbers of a counter are all different; layer_0 to layer_3, again and again, are parts of a step.
DIFFERENT = 0.9


class Ranges(NamedTuple):
    """The ranges that are steps: their name, with # for numbers, and the share of the GPU time that they hold."""

    pattern: str
    inside: float


def find(run: Callable[..., list[Any]], process: int, *, wanted: str | None, scoped: bool) -> Ranges | None:
    """Fill the table `step_pieces` from the ranges of one name on one thread.

    Args:
        run: Runs a statement of `queries/steps`.
        process: The process whose steps they are.
        wanted: The name, if the user says which (`*` and `?` match anything); it need not convince.
        scoped: Whether that is the name of the scope.
    """
    run("scoped" if scoped else "named", process=process, wanted=wanted)
    names = run("range_names")
    for pattern, thread, occurrences, texts, is_nested in names:
        counts = texts == 1 or texts >= DIFFERENT * occurrences
        if wanted is None and (occurrences < REPEATS or is_nested or not counts):
            continue
        run("ranges", thread=thread, pattern=pattern)
        ((inside, around, everything),) = run("range_work")
        if wanted is not None or (inside and inside >= INSIDE * around and inside >= OF_ALL * everything):
            run("range_pieces", process=process, thread=thread)
            return Ranges(pattern, inside / around if around else 0.0)
    return None
