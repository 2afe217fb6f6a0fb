"""Variants of a loop body: the same work with other kernels of the same classes, such as a GEMM with other tiles."""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.arrays import np
from nsys_insight.facts.loops.repetitions import SIMILAR_ITERATION, canonicalize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.signedinteger[Any]]

# The class of operations that only some variants have: the reduction after a split-K GEMM.
HELPER = -1


class Variants:
    """The bodies of a nest, by the classes of their operations.

    Two bodies are variants of one if they have the same classes in the same order, and `SIMILAR_ITERATION` of their
    terms are equal. Short bodies are therefore never variants: with three terms, one other kernel is another body.
    """

    def __init__(self, classes: Mapping[int, int]) -> None:
        """Begin without bodies; `classes` has the class of each operation's symbol."""
        self._class = dict(classes)
        self._classes_of_bodies: dict[tuple[int, ...], int] = {}
        self._bodies: dict[tuple[int, ...], list[tuple[int, Sequence[int]]]] = defaultdict(list)

    def classify(self, symbols: Ints) -> Ints:
        """Return the class of each of some symbols."""
        names, positions = np.unique(symbols, return_inverse=True)
        return np.array([self._class[name] for name in names.tolist()], np.int64)[positions]

    def find(self, body: Sequence[int]) -> int | None:
        """Return the symbol of a known body that is a variant of this one."""
        return next((symbol for symbol, _ in self._find_similar(body)), None)

    def align(self, body: list[int]) -> list[int]:
        """Return a body so that it begins with the same class as the known body that is a variant of it."""
        for _, known_body in self._find_similar(body):
            classes = self._classify(known_body)
            rotations = (body[start:] + body[:start] for start in range(len(body)))
            aligned = [rotation for rotation in rotations if self._classify(rotation) == classes]
            equal = [sum(map(operator.eq, rotation, known_body)) for rotation in aligned]
            return aligned[equal.index(max(equal))] if aligned else body
        return body

    def _find_similar(self, body: Sequence[int]) -> Iterator[tuple[int, Sequence[int]]]:
        for symbol, known_body in self._bodies.get(canonicalize(self._classify(body)), []):
            if _are_similar(body, known_body):
                yield symbol, known_body

    def add(self, symbol: int, body: Sequence[int]) -> None:
        """Remember a body by its symbol. In the bodies of outer loops, bodies of the same classes are one class."""
        key = canonicalize(self._classify(body))
        self._class[symbol] = self._classes_of_bodies.setdefault(key, HELPER - 1 - symbol)
        self._bodies[key].append((symbol, body))

    def split(self, body: Sequence[int]) -> list[int]:
        """Return where the iterations of a body begin if it consists of several variants of one; else [0]."""
        starts, classes = self._find_changes(body)
        for period in range(1, len(classes) // 2 + 1):
            if len(classes) % period == 0 and classes == classes[:period] * (len(classes) // period):
                cuts = [0, *starts[period::period]]
                if self._are_variants([body[first:end] for first, end in pairwise([*cuts, len(body)])]):
                    return cuts
        return [0]

    def count_iterations(self, terms: Sequence[int], body: Sequence[int]) -> int:
        """Return how many iterations of variants of a body some terms are; 0 if they are something else."""
        starts, classes = self._find_changes(terms)
        of_body = self._classify(body)
        if of_body[:1] == of_body[-1:] and len(classes) in (len(of_body) - 1, len(of_body)):
            # The operation at the end runs into the one at the start of the next iteration.
            of_body = of_body[:-1] if tuple(classes) == of_body[:-1] else of_body
            of_body = of_body[1:] if tuple(classes) == of_body[1:] else of_body
        count = len(classes) // max(1, len(of_body))
        if not count or tuple(classes) != of_body * count:
            return 0
        cuts = [0, *starts[len(of_body) :: len(of_body)], len(terms)]
        return count * self._are_variants([body, *(terms[first:end] for first, end in pairwise(cuts))])

    def is_part_of_neighbor(self, terms: Sequence[int], body: Sequence[int]) -> bool:
        """Return whether terms between two runs of a body are of the class of the operation before or after them.

        A variant may run two kernels where another runs one.
        """
        return {self._class[symbol] for symbol in terms} <= {HELPER, self._class[body[0]], self._class[body[-1]]}

    @staticmethod
    def _are_variants(bodies: Sequence[Sequence[int]]) -> bool:
        return all(_are_similar(bodies[0], body) for body in bodies[1:])

    def _classify(self, body: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._find_changes(body)[1])

    def _find_changes(self, body: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return where the class of the terms changes, and to which class; helpers have none."""
        starts: list[int] = []
        classes: list[int] = []
        for position, symbol in enumerate(body):
            name = self._class[symbol]
            if name != HELPER and (not classes or classes[-1] != name):
                starts.append(position)
                classes.append(name)
        return starts, classes


def _are_similar(left: Sequence[int], right: Sequence[int]) -> bool:
    shared = sum((Counter(left) & Counter(right)).values())
    return shared >= SIMILAR_ITERATION * max(len(left), len(right))


def extend_runs(
    symbol: Ints, start: Ints, stop: Ints, pieces: Sequence[Sequence[int]], is_folded: NDArray[np.bool_]
) -> tuple[Ints, Ints]:
    """Let runs of a period of several iterations begin and end with any of its iterations.

    `is_folded` marks the terms of runs, and is changed.
    """
    start, stop = start.copy(), stop.copy()
    for run in range(len(start)):
        for piece in pieces[:-1]:
            end = int(stop[run]) + len(piece)
            if end > len(symbol) or is_folded[stop[run] : end].any() or symbol[stop[run] : end].tolist() != [*piece]:
                break
            is_folded[stop[run] : end] = True
            stop[run] = end
        for piece in reversed(pieces[1:]):
            first = int(start[run]) - len(piece)
            if first < 0 or is_folded[first : start[run]].any() or symbol[first : start[run]].tolist() != [*piece]:
                break
            is_folded[first : start[run]] = True
            start[run] = first
    return start, stop
