"""Finding what repeats in a step: chains of kernels that come back in order, and layers."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from nsys_insight.facts.fusion.patterns import catalog, text_of
from nsys_insight.facts.fusion.stream import POINTWISE, Chain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_insight.facts.fusion.patterns import Pattern
    from nsys_insight.facts.fusion.stream import OpStream

# The longest chain that is looked for, and how many chains are compared in one stream at most.
LONGEST, MOST = 64, 400_000
# How often the rarest operation of a layer comes in it, at most.
PER_LAYER = 8


def chains(stream: OpStream) -> list[Chain]:
    """Find what may be fused in a stream: recurring runs, known patterns, the edges of matrix products, and decoys."""
    segments = list(_segments(stream))
    found = _closed(stream, segments)
    for places, pattern in _known(stream):
        found.setdefault(tuple(stream.ops[at].token for at in places[0]), Chain(stream, places, pattern))
    text, offsets = _text(stream)
    named = [_named(chain, text, offsets) for chain in found.values()]
    return [*named, *_edges(stream), *_across(stream, segments)]


def _segments(stream: OpStream) -> Iterable[tuple[int, int]]:
    """Yield the largest runs of operations that may be fused, as places from and to."""
    start = 0
    for at in range(len(stream.ops) + 1):
        ends = at == len(stream.ops) or not stream.fusable(at)
        if ends or at in stream.parted:
            if at - start > 0:
                yield start, at
            start = at + 1 if ends else at


def _closed(stream: OpStream, segments: Sequence[tuple[int, int]]) -> dict[tuple[int, ...], Chain]:
    """The runs that cannot be made longer without coming less often, and that do not overlap themselves."""
    tokens = [op.token for op in stream.ops]
    long = min(LONGEST, max(2, MOST // max(1, len(tokens))))
    starts: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for begin, end in segments:
        for length in range(2, min(long, end - begin) + 1):
            for at in range(begin, end - length + 1):
                starts[tuple(tokens[at : at + length])].append(at)
        if end - begin > long:
            starts[tuple(tokens[begin:end])].append(begin)
    extended = {
        part
        for run, places in starts.items()
        for part in (run[1:], run[:-1])
        if len(starts.get(part, ())) == len(places)
    }
    return {
        run: Chain(stream, tuple(tuple(range(at, at + len(run))) for at in places))
        for run, places in starts.items()
        if run not in extended and all(after - at >= len(run) for at, after in pairwise(places))
    }


def _known(stream: OpStream) -> Iterable[tuple[tuple[tuple[int, ...], ...], Pattern]]:
    """Yield the known patterns, each way of writing them by itself, with the places of the kernels that are fused."""
    words = stream.words
    text, offsets = _text(stream)
    at_offset = {offset: at for at, offset in enumerate(offsets)}
    for pattern in catalog().patterns:
        ways: dict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
        for match in pattern.sequence.finditer(text):
            begin, end = at_offset[match.start()], at_offset[match.end()]
            fused = tuple(at for at in range(begin, end) if words[at] not in pattern.around)
            whole = not any(at in stream.parted for at in range(begin + 1, end))
            if whole and len(fused) > 1 and all(stream.fusable(at) for at in fused):
                ways[tuple(stream.ops[at].token for at in range(begin, end))].append(fused)
        for places in ways.values():
            yield tuple(places), pattern


def _text(stream: OpStream) -> tuple[str, list[int]]:
    """Give the operations of a stream as text, and where each begins in it, with the end."""
    words = stream.words
    return text_of(words), list(accumulate((len(word) + 1 for word in words), initial=0))


def _named(chain: Chain, text: str, offsets: Sequence[int]) -> Chain:
    """Give a chain the pattern that all of it is, and that what comes before it allows."""
    if chain.pattern is None:
        ends = [(offsets[places[0]], offsets[places[-1] + 1]) for places in chain.places]
        pattern = next(
            (
                pattern
                for pattern in catalog().patterns
                if not pattern.around and all(pattern.sequence.fullmatch(text, *both) for both in ends)
            ),
            None,
        )
        return Chain(chain.stream, chain.places, pattern)
    around = set(range(chain.places[0][0], chain.places[0][-1])) - set(chain.places[0])
    return Chain(chain.stream, chain.places, chain.pattern, tuple(sorted(around)))


def _edges(stream: OpStream) -> list[Chain]:
    """The pointwise kernel right after a matrix product (its epilogue), or right before one (its prologue)."""
    found: dict[tuple[str, int, int], list[tuple[int, int]]] = defaultdict(list)
    families = [kernel.family if kernel else "" for kernel in stream.kernels]
    for at in range(len(families) - 1):
        if at + 1 in stream.parted:
            continue
        tokens = (stream.ops[at].token, stream.ops[at + 1].token)
        if families[at] == "gemm" and families[at + 1] in POINTWISE and stream.fusable(at + 1):
            found["epilogue", *tokens].append((at, at + 1))
        if families[at] in POINTWISE and stream.fusable(at) and families[at + 1] == "gemm":
            found["prologue", *tokens].append((at, at + 1))
    return [Chain(stream, tuple(places), edge=edge) for (edge, *_), places in found.items()]


def _across(stream: OpStream, segments: Sequence[tuple[int, int]]) -> list[Chain]:
    """Runs that would be one but for a wait of the host, a copy or communication in between: with what parts them."""
    found: dict[tuple[tuple[int, ...], str], list[tuple[int, ...]]] = defaultdict(list)
    for (begin, end), (after, last) in pairwise(segments):
        if last - begin > LONGEST:
            continue
        if after == end:
            veto = stream.parted[after]
        elif after == end + 1 and (why := _parts(stream, end)):
            veto = why
        else:
            continue
        run = tuple(range(begin, end)) + tuple(range(after, last))
        found[tuple(stream.ops[at].token for at in range(begin, last)), veto].append(run)
    return [Chain(stream, tuple(places), veto=veto) for (_, veto), places in found.items()]


def _parts(stream: OpStream, at: int) -> str | None:
    kernel, op = stream.kernels[at], stream.ops[at]
    if kernel is None:
        return f"a {op.label or op.kind} is between them"
    if kernel.family == "comm":
        return "communication is between them"
    return None


@dataclass(frozen=True, order=True)
class Layers:
    """A part of a stream in which `count` periods follow each other."""

    start: int
    period: int
    count: int


def layers_of(tokens: Sequence[int]) -> list[Layers]:
    """Find the parts of a sequence that are repetitions, the largest first cut, in their order.

    A part is one only if it is a quarter of what is looked at, and 8 operations: two kernels twice are no layers.
    """
    found: list[Layers] = []
    parts = [(0, len(tokens))]
    while parts:
        start, end = parts.pop()
        tried = [_longest(tokens, start, end, period) for period in _periods(tokens[start:end])]
        best = max(
            (layers for layers in tried if layers.count > 1),
            key=lambda layers: (layers.period * layers.count, -layers.period),
            default=None,
        )
        if best is None or best.period * best.count < max(8, (end - start) / 4):
            continue
        found.append(best)
        parts += [(start, best.start), (best.start + best.period * best.count, end)]
    return sorted(found)


def _periods(tokens: Sequence[int]) -> list[int]:
    """The distances after which tokens come back most: the next time, or up to the PER_LAYER-th next."""
    places: dict[int, list[int]] = defaultdict(list)
    for at, token in enumerate(tokens):
        places[token].append(at)
    votes: Counter[int] = Counter()
    for found in places.values():
        for times in range(1, min(PER_LAYER, len(found) - 1) + 1):
            distances = Counter(later - at for at, later in zip(found, found[times:], strict=False))
            ((distance, often),) = distances.most_common(1)
            if 2 * often >= len(found) - times:
                votes[distance] += often
    return [distance for distance, _ in votes.most_common(30)]


def _longest(tokens: Sequence[int], start: int, end: int, period: int) -> Layers:
    """The longest part in which every token comes back after the period."""
    best, begin = Layers(start, period, 0), start
    for at in range(start, end):
        if at + period < end and tokens[at] == tokens[at + period]:
            continue
        count = (at - begin) // period + 1 if at > begin else 0
        if count > best.count:
            best = Layers(begin, period, count)
        begin = at + 1
    return best
