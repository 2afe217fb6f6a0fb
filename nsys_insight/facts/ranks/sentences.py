"""What must be known of a run beside the numbers: its clocks, who is missing, what could not be matched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts.ranks.matching import apart
from nsys_insight.text.quantities import value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.ranks.numbers import Numbered
    from nsys_insight.facts.ranks.run import Run

# A difference of clocks, or a drift, that is worth a word.
_APART_NS, _DRIFT = 1_000_000, 1e-6
_NAMED = 8


def clock_said(found: Run, began: Sequence[int | None]) -> str:
    """Say how well the clocks of several traces are known to agree; of one trace, how well its GPUs' clocks do."""
    error = f"the ends of collectives agree within {_time(found.error)}"
    if len(found.clocks) == 1:
        return f"{error}, so nothing finer is said of who came first"
    first = next(iter(found.clocks))
    most, drift = 0.0, 0.0
    for trace, clock in found.clocks.items():
        began_apart = apart(began[first], began[trace])
        if began_apart is not None:
            most = max(most, abs(clock.offset + began_apart))
        drift = max(drift, abs(clock.drift))
    were = f"differed by up to {_time(most)}" if most >= _APART_NS else ""
    drifted = f"drifted by up to {drift * 1e6:.2g} µs a second" if drift >= _DRIFT else ""
    before = " and ".join(filter(None, [were, drifted]))
    said = f"the traces' clocks {before} and are aligned" if before else "the traces' clocks are aligned"
    ends = f"by the ends of collectives, which then agree within {_time(found.error)}"
    return f"{said} {ends}: nothing finer is said of who came first"


def missing_said(told: Numbered) -> str | None:
    """Say which ranks have no trace, and which ran nothing of NCCL in theirs."""
    silent = sorted(told.silent.values())
    said = []
    if told.missing:
        said.append(f"{_listed(told.missing)} {'is' if len(told.missing) == 1 else 'are'} not in these traces")
    if silent:
        said.append(f"{_listed(silent)} ran no kernels of NCCL")
    return "; ".join(said) or None


def doubled_said(told: Numbered, alike: Sequence[tuple[str, str]]) -> str | None:
    """Say which traces hold what others do, and which say that they are one rank."""
    said = [f"{one} holds the same kernels at the same times as {other}, and is left out" for one, other in alike]
    if told.doubled:
        number, labels = told.doubled
        names = f"{', '.join(labels[:_NAMED])}{' and others' if len(labels) > _NAMED else ''}"
        said.append(
            f"{names} each say that they are rank {number}, so the ranks are numbered in order: are these several runs?"
        )
    return "; ".join(said) or None


def unmatched_said(found: Run, told: Numbered) -> str | None:
    """Say which ranks and collectives are not matched with others."""
    members = {at for of in found.collectives for at in of.group.ranks}
    outside = [told.numbers[at] for at in range(len(found.ranks)) if at not in members]
    partial = sum(len(of.whole) - int(of.whole.sum()) for of in found.collectives)
    total = sum(len(of.whole) for of in found.collectives)
    said = []
    if outside:
        said.append(f"the collectives of {_listed(outside)} are matched with nobody's")
    main = found.main.group.ranks
    if len(main) < len(members):
        of = _listed([told.numbers[at] for at in main])
        said.append(f"who is late is told of the largest communicator, that of {of}")
    if partial:
        said.append(
            f"{partial:,} of {total:,} collectives are not in the capture of every rank, and count for nothing here"
        )
    return "; ".join(said) or None


def _time(ns: float) -> str:
    return value("time_ns", ns)


def _listed(ranks: Sequence[int]) -> str:
    names = ", ".join(map(str, ranks[:_NAMED])) + (f" and {len(ranks) - _NAMED} more" if len(ranks) > _NAMED else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {names}"
