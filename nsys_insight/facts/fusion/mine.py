"""Find what repeats in a step: chains of kernels that recur in the same order, and layers."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from nsys_insight.facts.fusion.patterns import Pattern, join_words, load_catalog
from nsys_insight.facts.fusion.stream import POINTWISE, Chain, OpStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# Kernels of the longest chain, and the maximum number of chains to compare in one stream.
MAX_LENGTH, MAX_CHAINS = 64, 400_000
# The rarest operation of a layer occurs at most this often in it.
MAX_PER_LAYER = 8


def find_chains(stream: OpStream) -> list[Chain]:
    """Find candidates in a stream: recurring runs, known patterns, kernels next to GEMMs, and runs with a veto."""
    segments = list(_find_segments(stream))
    chains = _find_recurring_runs(stream, segments)
    for occurrences, pattern in _find_patterns(stream):
        chains.setdefault(
            tuple(stream.ops[index].token for index in occurrences[0]), Chain(stream, occurrences, pattern)
        )
    text, offsets = _text(stream)
    labeled = [_label(chain, text, offsets) for chain in chains.values()]
    return [*labeled, *_find_gemm_edges(stream), *_find_split_runs(stream, segments)]


def _find_segments(stream: OpStream) -> Iterable[tuple[int, int]]:
    """Yield the longest runs of fusable operations without a boundary, as start and end index."""
    start = 0
    for index in range(len(stream.ops) + 1):
        ends = index == len(stream.ops) or not stream.is_fusable(index)
        if ends or index in stream.boundaries:
            if index - start > 0:
                yield start, index
            start = index + 1 if ends else index


def _find_recurring_runs(stream: OpStream, segments: Sequence[tuple[int, int]]) -> dict[tuple[int, ...], Chain]:
    """Return the closed runs: any longer run occurs less often. Runs that overlap themselves are left out."""
    tokens = [op.token for op in stream.ops]
    max_length = min(MAX_LENGTH, max(2, MAX_CHAINS // max(1, len(tokens))))
    starts_by_run: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for begin, end in segments:
        for length in range(2, min(max_length, end - begin) + 1):
            for start in range(begin, end - length + 1):
                starts_by_run[tuple(tokens[start : start + length])].append(start)
        if end - begin > max_length:
            starts_by_run[tuple(tokens[begin:end])].append(begin)
    extensible = {
        subrun
        for run, starts in starts_by_run.items()
        for subrun in (run[1:], run[:-1])
        if len(starts_by_run.get(subrun, ())) == len(starts)
    }
    return {
        run: Chain(stream, tuple(tuple(range(start, start + len(run))) for start in starts))
        for run, starts in starts_by_run.items()
        if run not in extensible and all(later - start >= len(run) for start, later in pairwise(starts))
    }


def _find_patterns(stream: OpStream) -> Iterable[tuple[tuple[tuple[int, ...], ...], Pattern]]:
    """Yield the known patterns with the indices of the fused kernels, for each sequence of kernels separately."""
    words = stream.words
    text, offsets = _text(stream)
    index_of = {offset: index for index, offset in enumerate(offsets)}
    for pattern in load_catalog().patterns:
        occurrences_by_tokens: dict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
        for match in pattern.sequence.finditer(text):
            begin, end = index_of[match.start()], index_of[match.end()]
            fused = tuple(index for index in range(begin, end) if words[index] not in pattern.skipped)
            is_unbroken = not any(index in stream.boundaries for index in range(begin + 1, end))
            if is_unbroken and len(fused) > 1 and all(stream.is_fusable(index) for index in fused):
                tokens = tuple(stream.ops[index].token for index in range(begin, end))
                occurrences_by_tokens[tokens].append(fused)
        for occurrences in occurrences_by_tokens.values():
            yield tuple(occurrences), pattern


def _text(stream: OpStream) -> tuple[str, list[int]]:
    """Return the operations of a stream as text, and the offset of each operation and of the end."""
    words = stream.words
    return join_words(words), list(accumulate((len(word) + 1 for word in words), initial=0))


def _label(chain: Chain, text: str, offsets: Sequence[int]) -> Chain:
    """Set the pattern that all of a chain matches, and the skipped kernels of a chain found by its pattern."""
    if chain.pattern is None:
        spans = [(offsets[indices[0]], offsets[indices[-1] + 1]) for indices in chain.occurrences]
        pattern = next(
            (
                pattern
                for pattern in load_catalog().patterns
                if not pattern.skipped and all(pattern.sequence.fullmatch(text, *span) for span in spans)
            ),
            None,
        )
        return Chain(chain.stream, chain.occurrences, pattern)
    first = chain.occurrences[0]
    skipped = set(range(first[0], first[-1])) - set(first)
    return Chain(chain.stream, chain.occurrences, chain.pattern, tuple(sorted(skipped)))


def _find_gemm_edges(stream: OpStream) -> list[Chain]:
    """Find the pointwise kernels right after a matrix product (its epilogue), or right before one (its prologue)."""
    occurrences_by_edge: dict[tuple[str, int, int], list[tuple[int, int]]] = defaultdict(list)
    families = [kernel.family if kernel else "" for kernel in stream.kernels]
    for index in range(len(families) - 1):
        if index + 1 in stream.boundaries:
            continue
        tokens = (stream.ops[index].token, stream.ops[index + 1].token)
        if families[index] == "gemm" and families[index + 1] in POINTWISE and stream.is_fusable(index + 1):
            occurrences_by_edge["epilogue", *tokens].append((index, index + 1))
        if families[index] in POINTWISE and stream.is_fusable(index) and families[index + 1] == "gemm":
            occurrences_by_edge["prologue", *tokens].append((index, index + 1))
    return [Chain(stream, tuple(occurrences), edge=edge) for (edge, *_), occurrences in occurrences_by_edge.items()]


def _find_split_runs(stream: OpStream, segments: Sequence[tuple[int, int]]) -> list[Chain]:
    """Find runs that only a wait of the host, a copy or communication splits, with the reason as veto."""
    occurrences_by_run: dict[tuple[tuple[int, ...], str], list[tuple[int, ...]]] = defaultdict(list)
    for (begin, end), (next_begin, next_end) in pairwise(segments):
        if next_end - begin > MAX_LENGTH:
            continue
        if next_begin == end:
            veto = stream.boundaries[next_begin]
        elif next_begin == end + 1 and (reason := _explain_split(stream, end)):
            veto = reason
        else:
            continue
        run = tuple(range(begin, end)) + tuple(range(next_begin, next_end))
        tokens = tuple(stream.ops[index].token for index in range(begin, next_end))
        occurrences_by_run[tokens, veto].append(run)
    return [Chain(stream, tuple(occurrences), veto=veto) for (_, veto), occurrences in occurrences_by_run.items()]


def _explain_split(stream: OpStream, index: int) -> str | None:
    kernel, op = stream.kernels[index], stream.ops[index]
    if kernel is None:
        return f"a {op.label or op.kind} is between them"
    if kernel.family == "comm":
        return "communication is between them"
    return None


@dataclass(frozen=True, order=True)
class Layers:
    """A section of a stream that consists of `count` consecutive periods."""

    start: int
    period: int
    count: int


def find_layers(tokens: Sequence[int]) -> list[Layers]:
    """Find the periodic sections of a sequence, in order. The longest is cut out first, then the rest is searched.

    A section needs a quarter of the searched range, and 8 operations: two kernels that occur twice are not layers.
    """
    layers: list[Layers] = []
    ranges = [(0, len(tokens))]
    while ranges:
        start, end = ranges.pop()
        candidates = [_find_longest(tokens, start, end, period) for period in _find_periods(tokens[start:end])]
        best = max(
            (candidate for candidate in candidates if candidate.count > 1),
            key=lambda candidate: (candidate.period * candidate.count, -candidate.period),
            default=None,
        )
        if best is None or best.period * best.count < max(8, (end - start) / 4):
            continue
        layers.append(best)
        ranges += [(start, best.start), (best.start + best.period * best.count, end)]
    return sorted(layers)


def _find_periods(tokens: Sequence[int]) -> list[int]:
    """Return the most frequent distances between equal tokens, up to the `MAX_PER_LAYER`-th next occurrence."""
    indices_by_token: dict[int, list[int]] = defaultdict(list)
    for index, token in enumerate(tokens):
        indices_by_token[token].append(index)
    votes: Counter[int] = Counter()
    for indices in indices_by_token.values():
        for step in range(1, min(MAX_PER_LAYER, len(indices) - 1) + 1):
            distances = Counter(later - index for index, later in zip(indices, indices[step:], strict=False))
            ((distance, count),) = distances.most_common(1)
            if 2 * count >= len(indices) - step:
                votes[distance] += count
    return [distance for distance, _ in votes.most_common(30)]


def _find_longest(tokens: Sequence[int], start: int, end: int, period: int) -> Layers:
    """Return the longest section in which every token recurs after the period."""
    best, begin = Layers(start, period, 0), start
    for index in range(start, end):
        if index + period < end and tokens[index] == tokens[index + period]:
            continue
        count = (index - begin) // period + 1 if index > begin else 0
        if count > best.count:
            best = Layers(begin, period, count)
        begin = index + 1
    return best
