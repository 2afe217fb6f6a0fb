"""The loop nest of a program, recovered from the sequence of its operations.

    a b a b a x b                       ->  3 x (a b), x b       the third iteration ends before x
    a b c d  a b c d  a b x d  a b c d  ->  4 x (a b c d)        the third iteration differs, and is joined
    a b b b c  a b b c  a b b b b c     ->  3 x (a b.. c)        equal operations in a row are one term

Operations are symbols. Repetitions are folded from the inside out: the shortest period first, each body becomes a
symbol of its own, and the next level sees a loop as one symbol, for any number of iterations. All occurrences of a body
are folded, so that a loop with one iteration looks like the same loop with ten. Iterations that
differ from the body (a logged value, another kernel) are joined to the loop around them. Bodies that differ only in
kernels of one class and place are variants of one body, and a period of several variants is several iterations.

The method is loop-nest recognition as in Ketterlin and Clauss, "Prediction and trace compression of data access
addresses through nested loop recognition" (CGO 2008), with distances between equal contexts for candidate periods. Each
level takes a time that is linear in the number of its terms.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.arrays import np
from nsys_insight.facts.loops.branches import MAX_BRANCHES, find_branches
from nsys_insight.facts.loops.repetitions import (
    MIN_ITERATIONS,
    SIMILAR_ITERATION,
    canonicalize,
    choose_rotation,
    compare_spans,
    find_occurrences,
    find_stretches,
    propose_periods,
)
from nsys_insight.facts.loops.variants import Variants, extend_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.signedinteger[Any]]

# The type of the symbols and positions of terms: three columns per level take half the memory of longer ones.
_INTEGER = np.int32
# Bodies are variants of one, such as with another kernel for another length, if they share this part of their terms.
SIMILAR_BODY = 0.9
# Most of an iteration is a loop of its own if it is a run of this number of equal operations: a solver that checks its
# residual after every hundredth sweep. It breaks for a check after fewer sweeps: then the check ends the iteration.
LONG_RUN = 50
# Between two runs of a loop at most this many different iterations in a row are joined.
MAX_DIFFERENT = 6
# An iteration may have this number of operations more than the others.
MAX_MORE = 2
# A kernel more after this number of iterations or fewer may be a variant of the operation next to it. Variants come
# back with the alignment of a length, every second, fourth or eighth time. It breaks for a model of a few layers whose
# other work is one kernel of the class that its layers end with.
MAX_VARIANTS = 8
# A different iteration next to a loop is recognized if the body has at least this number of terms.
MIN_DIFFERENT_TERMS = 4
# Terms after the same number of iterations, in this share of cases, are a part of an outer loop.
REGULAR = 0.75
# Nearly equal iterations are looked for in sequences up to this many terms, at this many symbols.
NEARLY_EQUAL_UP_TO, NEARLY_EQUAL_SYMBOLS = 100_000, 60
# A nest has at most this many levels.
LEVELS = 12
# Copies and waits after every 5th, 10th or 50th iteration are a log or a checkpoint, not an outer loop.
LOGGED_EVERY = 5
# Numbers of iterations are near each other if they are many and differ from their median by at most this share.
MANY_ITERATIONS, NEARLY_EQUAL = 20, 0.15
# Different iterations are joined to this many loops of a level.
JOINED_LOOPS = 50


@dataclass(frozen=True)
class Terms:
    """A sequence of terms, each an operation, a run of equal operations or a loop.

    `first` has the index of each term's first operation, `loop` the index of its loop in the nest or -1; `end` is the
    index after the last operation.
    """

    symbol: Ints
    first: Ints
    loop: Ints
    end: int

    def __len__(self) -> int:
        """Return the number of terms."""
        return len(self.symbol)

    def slice(self, start: int, stop: int) -> Terms:
        """Return the terms from `start` up to `stop`."""
        end = int(self.first[stop]) if stop < len(self) else self.end
        return Terms(self.symbol[start:stop], self.first[start:stop], self.loop[start:stop], end)


@dataclass(frozen=True)
class Loop:
    """One execution of a loop: operations from `first` up to `end`, and the first operation of each iteration.

    Iterations take one of up to `branches` branches.
    """

    symbol: int
    first: int
    end: int
    iterations: Ints
    terms: Terms
    branches: int = 1

    def iteration(self, number: int) -> Terms:
        """Return the terms of one iteration."""
        start = np.searchsorted(self.terms.first, self.iterations[number])
        last = number + 1 == len(self.iterations)
        stop = len(self.terms) if last else np.searchsorted(self.terms.first, self.iterations[number + 1])
        return self.terms.slice(int(start), int(stop))


@dataclass(frozen=True)
class _Fold:
    """The loops of one period: of `symbols[i]` from term `starts[i]` up to `stops[i]`."""

    index: int
    terms: Terms
    symbols: Ints
    starts: Ints
    stops: Ints
    period: int


class LoopNest:
    """The loops of a sequence of operations; `terms` is its outermost level.

    `has_branches` tells whether there are iterations that take one of a few branches.
    """

    def __init__(  # noqa: PLR0913 - what the operations are
        self,
        operations: Sequence[int] | Ints,
        is_minor: NDArray[np.bool_] | None = None,
        is_end: NDArray[np.bool_] | None = None,
        classes: Mapping[int, int] | None = None,
        positions: Ints | None = None,
        *,
        has_branches: bool = False,
    ) -> None:
        """Find the loops of a sequence.

        Args:
            operations: A small number for each operation; equal operations have equal numbers.
            is_minor: Whether an operation alone makes no loop of its own: copies, memsets and waits.
            is_end: Whether an iteration rather ends than begins with an operation: copies to the host and waits.
            classes: A number for each different operation: those that may replace each other have equal numbers from
                0, and `variants.HELPER` is the class of those that only some variants need.
            positions: Where the operations are in a longer sequence that also has others, and then its length.
            has_branches: Whether iterations may take one of a few branches (`branches.py`). Repetitions of one branch,
                and of two in turn, are then no loops.
        """
        self._folds: list[_Fold] = []
        self._joined: dict[int, Loop] = {}
        self._loops = 0
        self._bodies: dict[int, tuple[int, ...]] = {}
        self._symbols: dict[tuple[int, ...], int] = {}
        self._inner: dict[int, set[int]] = {}
        operations = np.asarray(operations, _INTEGER)
        smallest = operations.min(initial=0)
        is_used = np.bincount(operations - smallest) > 0
        names = (np.flatnonzero(is_used) + smallest).tolist()
        self._variants = Variants(
            {symbol: symbol if classes is None else classes[name] for symbol, name in enumerate(names)}
        )
        self._next_symbol = len(names)
        symbol = (np.cumsum(is_used, dtype=_INTEGER) - _INTEGER(1))[operations - smallest]
        self._minor = set() if is_minor is None else set(symbol[is_minor].tolist())
        self._ends = set() if is_end is None else set(symbol[is_end].tolist())
        bounds = np.arange(len(symbol) + 1, dtype=_INTEGER) if positions is None else positions.astype(_INTEGER)
        self.positions = bounds[:-1]
        self.terms = _merge_runs(Terms(symbol, self.positions, np.full(len(symbol), -1, _INTEGER), int(bounds[-1])))
        self._tries_branches = has_branches
        self.has_branches = False
        self._fold()

    def loop(self, index: int) -> Loop:
        """Return a loop by its index in `Terms.loop`."""
        if index in self._joined:
            return self._joined[index]
        fold = next(fold for fold in reversed(self._folds) if fold.index <= index)
        number = index - fold.index
        terms = fold.terms.slice(int(fold.starts[number]), int(fold.stops[number]))
        return Loop(int(fold.symbols[number]), int(terms.first[0]), terms.end, terms.first[:: fold.period], terms)

    def find_operations(self, first: int, end: int) -> Ints:
        """Return where the operations of the nest are, from `first` up to `end`."""
        return self.positions[slice(*self._count_before(np.array([first, end])).tolist())]

    def _count_before(self, positions: Ints) -> Ints:
        """Count the operations before positions. With another type, NumPy would convert all of the nest each time."""
        counts: Ints = np.searchsorted(self.positions, positions.astype(self.positions.dtype))
        return counts

    def loops_of(self, terms: Terms) -> Iterator[Loop]:
        """Return the loops among some terms, in their order."""
        for index in terms.loop[terms.loop >= 0].tolist():
            yield self.loop(index)

    def long_runs_of(self, terms: Terms) -> list[Loop]:
        """Return the runs of equal operations among some terms if these runs hold most of their operations."""
        if terms.end - int(terms.first[0]) - len(terms) < LONG_RUN - 1:
            return []  # the usual case: not enough operations for one long run
        runs = [loop for _, loop in self._find_runs(terms, LONG_RUN)]
        operations = len(self.find_operations(int(terms.first[0]), terms.end))
        return runs if 2 * sum(len(loop.iterations) for loop in runs) >= operations else []

    def inner_symbols(self, symbol: int) -> set[int]:
        """Return the symbols of the loops inside of a loop, at any depth."""
        if symbol not in self._inner:
            body = [inner for inner in self._bodies.get(symbol, ()) if inner in self._bodies]
            self._inner[symbol] = set(body).union(*(self.inner_symbols(inner) for inner in body if inner != symbol))
        return self._inner[symbol]

    def list_scattered(self) -> list[int]:
        """Return the symbols of loops that run at several places of the nest, those that run inside of others last."""
        outermost = set(self.terms.symbol[self.terms.loop >= 0].tolist())
        nested_symbols = outermost.union(*(self.inner_symbols(symbol) for symbol in outermost))
        place_counts = Counter(outermost)
        for symbol in nested_symbols:
            place_counts.update(inner for inner in set(self._bodies[symbol]) if inner in self._bodies)
        scattered = [symbol for symbol, count in place_counts.items() if count > 1]
        return sorted(scattered, key=lambda symbol: sum(symbol in self.inner_symbols(other) for other in scattered))

    def _fold(self) -> None:
        for _ in range(LEVELS):
            length = len(self.terms)
            self._fold_branches()
            while self._fold_equal():
                self._fold_branches()
                self._join_similar()
                for _ in range(MAX_DIFFERENT):
                    if not self._join_edges():
                        break
                    self._join_variants()
            if len(self.terms) == length:
                self._fold_similar()
            if len(self.terms) == length:
                break
        self._fold_runs()

    def _fold_branches(self) -> None:
        """Fold iterations that begin alike and then take one of a few branches."""
        terms = self.terms
        if not self._tries_branches or len(terms) > NEARLY_EQUAL_UP_TO:
            return
        is_mark = (terms.loop < 0) & ~np.isin(terms.symbol, list(self._minor))
        branches = find_branches(self._variants.classify(terms.symbol), terms.first, is_mark)
        if branches:
            starts, end, spans = branches
            # The inputs that are copied before each start belong to the iteration after them.
            while starts[0] > 0 and self._are_inputs(terms.symbol[starts - 1]):
                end -= int(self._are_inputs(terms.symbol[end - 1 : end]))
                starts = starts - 1
            inner = terms.slice(int(starts[0]), end)
            symbol = self._symbol_of(np.concatenate([terms.symbol[span] for span in spans]).tolist())
            loop = Loop(symbol, int(inner.first[0]), inner.end, terms.first[starts], inner, MAX_BRANCHES)
            self._insert([(int(starts[0]), end, loop)])
            self.has_branches = True

    def _are_inputs(self, symbols: Ints) -> bool:
        """Return whether symbols alone make no loop, and do not end an iteration."""
        return (self._minor - self._ends).issuperset(symbols.tolist())

    def _fold_runs(self) -> None:
        """Make loops of the outermost runs of equal operations, such as a graph that is launched again and again."""
        self._insert([(index, index + 1, loop) for index, loop in self._find_runs(self.terms, MIN_ITERATIONS)])

    def _find_runs(self, terms: Terms, minimum: int) -> list[tuple[int, Loop]]:
        """Return the terms that are runs of this number of equal operations or more, each with its loop."""
        ends = np.append(terms.first[1:], terms.end)
        counts = self._count_before(ends) - self._count_before(terms.first)
        runs = []
        for index in np.flatnonzero((terms.loop < 0) & (counts >= minimum)).tolist():
            symbol = int(terms.symbol[index])
            if symbol not in self._minor:
                firsts = self.find_operations(int(terms.first[index]), int(ends[index]))
                symbols, loops = (np.full(len(firsts), value, _INTEGER) for value in (symbol, -1))
                inner = Terms(symbols, firsts, loops, int(ends[index]))
                runs.append((index, Loop(self._symbol_of([symbol]), int(firsts[0]), inner.end, firsts, inner)))
        return runs

    def _symbol_of(self, body: Sequence[int]) -> int:
        key = canonicalize(body)
        if key not in self._symbols:
            variant = self._variants.find(body)
            self._symbols[key] = self._next_symbol if variant is None else variant
        if self._symbols[key] == self._next_symbol:
            self._variants.add(self._next_symbol, body)
            if self._minor.issuperset(body):
                self._minor.add(self._next_symbol)
            self._bodies[self._next_symbol] = tuple(body)
            self._next_symbol += 1
        return self._symbols[key]

    def _fold_equal(self) -> bool:
        """Fold the repetitions of the shortest period; return whether there are any."""
        symbol = self.terms.symbol
        for period in propose_periods(symbol):
            if MIN_ITERATIONS * period > len(symbol):
                continue
            is_equal = np.zeros(len(symbol) + 2, bool)  # with one that is not before the first and after the last
            np.equal(symbol[period:], symbol[:-period], out=is_equal[period + 1 : -1])
            edges = np.flatnonzero(is_equal[1:] != is_equal[:-1]).reshape(-1, 2)
            runs = edges[edges[:, 1] - edges[:, 0] >= (MIN_ITERATIONS - 1) * period]
            if len(runs):
                runs[:, 0] -= period
                self._fold_period(period, runs)
                return True
        return False

    def _fold_period(self, period: int, runs: Ints) -> None:
        """Replace the repetitions of one period by loops, at all occurrences of their bodies."""
        symbol = self.terms.symbol
        by_body: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
        canonical: dict[bytes, tuple[int, ...]] = {}
        for start, stop in runs.tolist():
            first = symbol[start : start + period]
            if (key := first.tobytes()) not in canonical:
                canonical[key] = canonicalize(first.tolist())
            by_body[canonical[key]].append((start, stop))
        is_folded = np.zeros(len(symbol), bool)
        starts, stops, symbols = [], [], []
        cuts_by_loop: dict[int, tuple[int, list[int]]] = {}
        for _, regions in sorted(by_body.items(), key=lambda item: -sum(stop - start for start, stop in item[1])):
            body = self._variants.align(choose_rotation(symbol, period, regions, self._ends))
            positions = find_occurrences(symbol, body)
            positions = positions[~is_folded[positions] & ~is_folded[positions + period - 1]]
            for offset in range(period):
                is_folded[positions + offset] = True
            is_start = np.diff(positions, prepend=-period - 1) != period
            is_stop = np.diff(positions, append=len(symbol) + period + 1) != period
            start, stop = positions[is_start], positions[is_stop] + period
            cuts = self._variants.split(body)
            if len(cuts) > 1:
                pieces = [body[first:end] for first, end in pairwise([*cuts, period])]
                body = pieces[0]
                self._symbols.update(dict.fromkeys(map(canonicalize, pieces), self._symbol_of(body)))
                full_bodies = start.tolist()
                start, stop = extend_runs(symbol, start, stop, pieces, is_folded)
                cuts_by_loop |= {
                    first: (full_body, cuts) for first, full_body in zip(start.tolist(), full_bodies, strict=True)
                }
            starts.append(start)
            stops.append(stop)
            symbols.append(np.full(len(start), self._symbol_of(body)))
        start = np.concatenate(starts)
        order = np.argsort(start)
        start, stop, loop_symbol = start[order], np.concatenate(stops)[order], np.concatenate(symbols)[order]
        self._folds.append(_Fold(self._loops, self.terms, loop_symbol, start, stop, period))
        for index in np.flatnonzero(np.isin(start, list(cuts_by_loop))).tolist():
            full_body, cuts = cuts_by_loop[int(start[index])]
            begins = np.concatenate([np.arange(full_body + offset - period, stop[index], period) for offset in cuts])
            begins = np.sort(begins[begins >= start[index]])
            terms = self.terms.slice(int(start[index]), int(stop[index]))
            self._joined[self._loops + index] = Loop(
                int(loop_symbol[index]), int(terms.first[0]), terms.end, self.terms.first[begins], terms
            )
        self._replace(start, stop, loop_symbol, self._loops + np.arange(len(start)))
        self._loops += len(start)

    def _replace(self, start: Ints, stop: Ints, symbol: Ints, loop: Ints) -> None:
        """Put one term in the place of terms from `start` up to `stop`; merge runs of equal operations that result."""
        terms = self.terms
        depth = np.zeros(len(terms) + 1, np.int64)
        np.add.at(depth, start, 1)
        np.add.at(depth, stop, -1)
        stays = np.cumsum(depth[:-1]) == 0
        stays[start] = True
        new_symbol, new_loop = terms.symbol.copy(), terms.loop.copy()
        new_symbol[start], new_loop[start] = symbol, loop
        self.terms = _merge_runs(Terms(new_symbol[stays], terms.first[stays], new_loop[stays], terms.end))

    def _join_similar(self) -> None:
        """Join runs of a loop with only a few different iterations between them, loops with most operations first."""
        terms = self.terms
        loop_positions = np.flatnonzero(terms.loop >= 0)
        if len(loop_positions) < 2:
            return
        ends = np.append(terms.first[1:], terms.end)
        operations: Counter[int] = Counter()
        for symbol, length in zip(
            terms.symbol[loop_positions].tolist(),
            (ends[loop_positions] - terms.first[loop_positions]).tolist(),
            strict=True,
        ):
            operations[symbol] += length
        for symbol, _ in operations.most_common(JOINED_LOOPS):
            self._join_loop(symbol)
        self._join_variants()

    def _join_loop(self, symbol: int) -> None:
        terms = self.terms
        loop_positions = np.flatnonzero(terms.symbol == symbol)
        longest = 2 * MAX_DIFFERENT * len(self._bodies[symbol])
        pairs = [
            (left, right, terms.symbol[left + 1 : right].tobytes())
            for left, right in zip(loop_positions[:-1].tolist(), loop_positions[1:].tolist(), strict=True)
            if right - left <= longest
        ]
        before: dict[bytes, list[int]] = defaultdict(list)
        for left, _, between in pairs:
            before[between].append(len(self.loop(int(terms.loop[left])).iterations))
        counts = {
            between: self._different_iterations(symbol, between, iterations) for between, iterations in before.items()
        }
        variants = {
            between: self._count_variants(symbol, between, _most_common(iterations))
            for between, iterations in before.items()
        }
        different = [left for left, _, between in pairs if counts[between] and variants[between] is None]
        if _is_regular([len(self.loop(int(terms.loop[left])).iterations) for left in different]):
            counts = {between: None if count else count for between, count in counts.items()}
        counts |= {between: count for between, count in variants.items() if count is not None}
        chains: list[list[tuple[int, int, int]]] = []
        for left, right, between in pairs:
            count = counts[between]
            if count is None:
                continue
            if chains and chains[-1][-1][1] == left:
                chains[-1].append((left, right, count))
            else:
                chains.append([(left, right, count)])
        self._put_joined([(symbol, chain) for chain in chains])

    def _count_variants(self, symbol: int, between: bytes, iterations: int) -> int | None:
        """Return how many variants of iterations lie between two runs of one loop; None if it is something else.

        Args:
            symbol: The loop.
            between: The symbols of the terms between the two.
            iterations: The usual number of iterations before these terms.
        """
        terms, body = np.frombuffer(between, _INTEGER).tolist(), self._bodies[symbol]
        is_short = 0 < len(terms) <= MAX_MORE < len(body) and iterations < MAX_VARIANTS
        if is_short and self._variants.is_part_of_neighbor(terms, body):
            return 0
        return self._variants.count_iterations(terms, body) or None

    def _join_variants(self) -> None:
        """Join loops that follow each other and whose bodies are variants of one."""
        terms = self.terms
        loop_positions = np.flatnonzero((terms.loop[:-1] >= 0) & (terms.loop[1:] >= 0))
        chains: list[tuple[int, list[tuple[int, int, int]]]] = []
        for left in loop_positions.tolist():
            left_body, right_body = int(terms.symbol[left]), int(terms.symbol[left + 1])
            if left_body == right_body or self._is_variant(left_body, right_body):
                if chains and chains[-1][1][-1][1] == left:
                    chains[-1][1].append((left, left + 1, 0))
                else:
                    chains.append((left_body, [(left, left + 1, 0)]))
        self._put_joined(chains)

    def _put_joined(self, chains: Sequence[tuple[int, list[tuple[int, int, int]]]]) -> None:
        """Replace chains of loops by one loop; each link has two terms, and the number of iterations between them."""
        terms = self.terms
        joined = []
        for symbol, chain in chains:
            firsts = [self.loop(int(terms.loop[chain[0][0]])).iterations]
            for left, right, count in chain:
                between = terms.first[left + 1 : right]
                firsts += [between[[round(i * len(between) / count) for i in range(count)]]] if count else []
                firsts.append(self.loop(int(terms.loop[right])).iterations)
            start, stop = chain[0][0], chain[-1][1] + 1
            inner_terms = self._expand(terms, start, stop, symbol)
            joined.append(
                (
                    start,
                    stop,
                    Loop(symbol, int(terms.first[start]), inner_terms.end, np.concatenate(firsts), inner_terms),
                )
            )
        self._insert(joined)

    def _insert(self, joined: Sequence[tuple[int, int, Loop]]) -> None:
        """Replace terms by loops."""
        if not joined:
            return
        for number, (_, _, loop) in enumerate(joined, self._loops):
            self._joined[number] = loop
        loops = self._loops + np.arange(len(joined))
        self._loops += len(joined)
        starts, stops = np.array([start for start, *_ in joined]), np.array([stop for _, stop, _ in joined])
        self._replace(starts, stops, np.array([loop.symbol for *_, loop in joined]), loops)

    def _expand(self, terms: Terms, start: int, stop: int, symbol: int) -> Terms:
        """Return terms, with loops of a symbol or its variants replaced by the terms of their iterations."""
        pieces = []
        position = start
        for index in range(start, stop):
            name = int(terms.symbol[index])
            if terms.loop[index] >= 0 and (name == symbol or self._is_variant(name, symbol)):
                pieces += [terms.slice(position, index), self.loop(int(terms.loop[index])).terms]
                position = index + 1
        pieces.append(terms.slice(position, stop))
        return Terms(
            np.concatenate([piece.symbol for piece in pieces]),
            np.concatenate([piece.first for piece in pieces]),
            np.concatenate([piece.loop for piece in pieces]),
            pieces[-1].end if len(pieces[-1]) else int(terms.first[stop]) if stop < len(terms) else terms.end,
        )

    def _different_iterations(self, symbol: int, between: bytes, before: list[int]) -> int | None:
        """Return how many iterations lie between two runs of one loop; None if they are two loops.

        Args:
            symbol: The loop.
            between: The symbols of the terms between the two.
            before: The number of iterations before each occurrence of these terms.
        """
        terms = np.frombuffer(between, _INTEGER).tolist()
        if not terms:
            return 0
        body = self._bodies[symbol]
        is_rare = len(before) < MIN_ITERATIONS
        if is_rare and len(terms) <= min(MAX_MORE, (1 - SIMILAR_ITERATION) * len(body)):
            return 0  # a few more operations in one iteration
        count = max(1, round(len(terms) / len(body)))
        if self._minor.issuperset(terms) and not self._minor.issuperset(body):
            # After every tenth iteration: a log or a checkpoint. After every 24th, or after about 70: a part of the
            # outer loop.
            if _is_regular(before):
                return None if _most_common(before) % LOGGED_EVERY else 0
            return None if _is_nearly_regular(before) else 0
        if _is_regular(before) or count > MAX_DIFFERENT:
            return None
        shared = sum((Counter(terms) & Counter(body * count)).values())
        length = len(body) * count
        is_similar = shared >= SIMILAR_ITERATION * max(len(terms), length)
        has_all = shared == length and (
            len(terms) <= 2 * length or self._minor.issuperset(Counter(terms) - Counter(body * count))
        )
        return count if is_similar or has_all else None

    def _join_edges(self) -> bool:
        """Join a different iteration that comes directly before or after a loop; return whether there was one."""
        terms = self.terms
        loop_positions = np.flatnonzero(terms.loop >= 0)
        if not len(loop_positions) or len(loop_positions) > NEARLY_EQUAL_UP_TO:
            return False
        similar: dict[tuple[int, bytes], bool] = {}
        edges: dict[tuple[int, bytes, bytes], tuple[int, int]] = {}
        last_positions: dict[int, int] = {}
        joined = []
        joined_until = 0
        for index in loop_positions.tolist():
            symbol = int(terms.symbol[index])
            body_length = len(self._bodies[symbol])
            low = max(joined_until, index - 2 * body_length, last_positions.get(symbol, -1) + 1)
            last_positions[symbol] = index
            if body_length < MIN_DIFFERENT_TERMS:
                continue
            # Most loops of a symbol are between the same terms.
            terms_before, terms_after = terms.symbol[low:index], terms.symbol[index + 1 : index + 1 + body_length]
            context = (symbol, terms_before.tobytes(), terms_after.tobytes())
            if context not in edges:
                edges[context] = self._measure_edges(symbol, terms_before, terms_after, similar)
            count_before, count_after = edges[context]
            before, after = index - count_before, index + 1 + count_after
            if after - before == 1:
                continue
            loop = self.loop(int(terms.loop[index]))
            firsts = [terms.first[before:index][:1], loop.iterations, terms.first[index + 1 : after][:1]]
            inner_terms = self._expand(terms, before, after, symbol)
            joined.append(
                (
                    before,
                    after,
                    Loop(symbol, int(terms.first[before]), inner_terms.end, np.concatenate(firsts), inner_terms),
                )
            )
            joined_until = after
        self._insert(joined)
        return bool(joined)

    def _measure_edges(
        self, symbol: int, before: Ints, after: Ints, similarity_cache: dict[tuple[int, bytes], bool]
    ) -> tuple[int, int]:
        """Return how many terms directly before a loop are a different iteration of it, and how many after it."""
        body = self._bodies[symbol]
        start = self._find_iteration(body, before, symbol, similarity_cache)
        is_after = (
            len(after) == len(body)
            and symbol not in after
            and self._is_iteration(body, after, symbol, similarity_cache)
        )
        return 0 if start is None else len(before) - start, len(after) if is_after else 0

    def _find_iteration(
        self, body: Sequence[int], terms: Ints, symbol: int, similarity_cache: dict[tuple[int, bytes], bool]
    ) -> int | None:
        """Return where a different iteration starts that ends with these terms; None if they do not."""
        starts = np.flatnonzero(terms == body[0]).tolist()
        for start in [*reversed(starts), len(terms) - len(body)]:
            if start >= 0 and self._is_iteration(body, terms[start:], symbol, similarity_cache):
                return int(start)
        return None

    def _is_iteration(
        self, body: Sequence[int], terms: Ints, symbol: int, similarity_cache: dict[tuple[int, bytes], bool]
    ) -> bool:
        if len(terms) < MIN_DIFFERENT_TERMS // 2:
            return False
        key = (symbol, terms.tobytes())
        if key not in similarity_cache:
            shared = sum((Counter(terms.tolist()) & Counter(body)).values())
            # One of the first two terms is in its place, and one of the last two: it is not a part of two iterations.
            is_aligned = any(terms[i] == body[i] for i in (0, 1)) and any(terms[i] == body[i] for i in (-1, -2))
            similarity_cache[key] = is_aligned and shared >= SIMILAR_ITERATION * max(len(terms), len(body))
        return similarity_cache[key]

    def _is_variant(self, left: int, right: int) -> bool:
        left_body, right_body = self._bodies.get(left, ()), self._bodies.get(right, ())
        shared = sum((Counter(left_body) & Counter(right_body)).values())
        return shared >= SIMILAR_BODY * max(len(left_body), len(right_body), 1)

    def _fold_similar(self) -> None:
        """Fold iterations that are only similar: between the marks of one symbol, mostly the same terms."""
        terms, symbol = self.terms, self.terms.symbol
        marked_spans = self._choose_mark()
        if marked_spans is None:
            return
        marks, is_similar, body = marked_spans
        symbol_of_loop = self._symbol_of(sorted(body.elements()))
        joined = []
        for first, last in find_stretches(is_similar):
            begin, end = int(marks[first]), int(marks[last + 1])
            # The last iteration goes as far as its terms are those of the body.
            left = Counter(body)
            after = end
            while after < len(terms) and left[int(symbol[after])] > 0:
                left[int(symbol[after])] -= 1
                after += 1
            is_iteration = after - end >= 0.5 * body.total()
            after = after if is_iteration else end
            if last - first + 1 + is_iteration < MIN_ITERATIONS:
                continue
            iterations = terms.first[marks[first : last + 1 + is_iteration]]
            inner = terms.slice(begin, after)
            joined.append((begin, after, Loop(symbol_of_loop, int(inner.first[0]), inner.end, iterations, inner)))
        self._insert(joined)

    def _choose_mark(self) -> tuple[Ints, NDArray[np.bool_], Counter[int]] | None:
        """Choose the symbol that most similar iterations begin with.

        Return where it occurs, whether the terms up to its next occurrence are a similar iteration, and what most of
        them contain; None if no symbol marks iterations that cover half of the terms.
        """
        terms, symbol = self.terms, self.terms.symbol
        if not 2 * MIN_ITERATIONS <= len(terms) <= NEARLY_EQUAL_UP_TO:
            return None
        best = None
        seen_periods = set()
        for mark, count in Counter(symbol.tolist()).most_common():
            if not MIN_ITERATIONS <= count <= len(terms) / 2:
                continue
            marks = np.flatnonzero(symbol == mark)
            lengths = np.diff(marks)
            length = int(np.median(lengths))
            if length < 2 or (count, length) in seen_periods:
                continue
            seen_periods.add((count, length))
            if len(seen_periods) > NEARLY_EQUAL_SYMBOLS:
                break
            is_similar, body = compare_spans(symbol, marks, self._minor)
            if is_similar.sum() < max(MIN_ITERATIONS - 1, REGULAR * len(is_similar)):
                continue
            score = (round(lengths[is_similar].sum() / len(terms), 1), count)
            if score[0] >= 0.5 and (best is None or score > best[0]):
                best = (score, marks, is_similar, body)
        return best[1:] if best else None


def _most_common(counts: list[int]) -> int:
    return Counter(counts).most_common(1)[0][0]


def _is_regular(counts: list[int]) -> bool:
    """Return whether most of several numbers of iterations are equal, and more than one."""
    if len(counts) < MIN_ITERATIONS or _most_common(counts) == 1:
        return False
    return counts.count(_most_common(counts)) >= max(MIN_ITERATIONS, REGULAR * len(counts))


def _is_nearly_regular(counts: list[int]) -> bool:
    """Return whether most of several numbers of iterations are near their median, and many."""
    median = sorted(counts)[len(counts) // 2]
    nearly_equal = sum(abs(count - median) <= NEARLY_EQUAL * median for count in counts)
    return median >= MANY_ITERATIONS and nearly_equal >= max(MIN_ITERATIONS, REGULAR * len(counts))


def _merge_runs(terms: Terms) -> Terms:
    """Make one term of equal operations that follow each other."""
    if not len(terms):
        return terms
    is_repeated = (terms.symbol[1:] == terms.symbol[:-1]) & (terms.loop[1:] < 0) & (terms.loop[:-1] < 0)
    stays = np.concatenate([[True], ~is_repeated])
    return Terms(terms.symbol[stays], terms.first[stays], terms.loop[stays], terms.end)
