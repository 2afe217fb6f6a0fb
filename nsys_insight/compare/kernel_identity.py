"""Which kernel of one run is which of another, when names carry tiles, template arguments and numbers."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from nsys_insight.text.kernel_names import bare, functor_of, readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

# Calls per step that differ by less than this share are the same: a step of many may miss one.
SAME_CALLS = 0.01
# Longer sequences of kernels are not aligned: that takes time with the square of their length.
LONGEST = 2_000


@dataclass(frozen=True)
class KernelOfRun:
    """A kernel of a run: how often a step launches it, and what it is."""

    family: str
    calls: float
    registers: int | None = None


@dataclass(frozen=True)
class Match:
    """Kernels of two runs that do the same work.

    Attributes:
        before: Their names before; none if the work is new.
        after: Their names after; none if it is gone.
        how: "name" (the same names), "identity" (the same but for tiles, types and numbers), "guess" (other names at
            the same place in the step); None for what is new or gone.
        name: What to call them.
        family: Their family, of the run in which they are (after, where they are in both).
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    how: str | None
    name: str
    family: str


def identity(name: str) -> str:
    """The part of a kernel's name that does not depend on tiles, types and numbers: its own name and its functor's.

    Numbers become #: `nvjet_sm90_tst_8x64_64x16` and `nvjet_sm90_tst_16x64_64x16` are both `nvjet_sm#_tst_#x#_#x#`.
    """
    text = readable(name)
    own = text.partition("<")[0] if not text.startswith("<") else text
    does = re.split(r"::lambda", bare(functor_of(text)))[0]
    return re.sub(r"\d+", "#", f"{own}<{does}>" if does else own)


def match(
    before: Mapping[str, KernelOfRun],
    after: Mapping[str, KernelOfRun],
    sequences: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> list[Match]:
    """Pair the kernels of two runs; each name is in one match.

    Names that both runs launch as often are paired as they are. The rest is paired by identity, all variants together,
    for a library that chooses its tiles anew spreads the same calls over other names. What is then in one run alone is
    paired, as a guess, by where it stands in the step between kernels of both.

    Args:
        before: The kernels of the one run by name.
        after: Those of the other.
        sequences: The names of the kernels of a typical step of each, in order; empty where there are no steps.
    """
    same = {name for name in before.keys() & after.keys() if _as_often(before[name].calls, after[name].calls)}
    groups = _groups(before.keys() - same, after.keys() - same, identity)
    found = [Match((name,), (name,), "name", name, after[name].family) for name in same]
    alone: tuple[list[str], list[str]] = ([], [])
    for old, new in groups:
        if old and new:
            how = "name" if old == new else "identity"
            name = new[0] if len({*old, *new}) == 1 else identity(new[0])
            found.append(Match(old, new, how, name, after[new[0]].family))
        else:
            alone[0].extend(old)
            alone[1].extend(new)
    for old, new in _same_place(before, after, alone, sequences):
        name = " + ".join(map(identity, old)) + " → " + " + ".join(map(identity, new))
        found.append(Match(old, new, "guess", name, after[new[0]].family))
        alone = ([name for name in alone[0] if name not in old], [name for name in alone[1] if name not in new])
    found += [Match((name,), (), None, name, before[name].family) for name in alone[0]]
    found += [Match((), (name,), None, name, after[name].family) for name in alone[1]]
    return found


def _as_often(one: float, other: float) -> bool:
    return abs(one - other) <= SAME_CALLS * max(one, other)


def _groups(
    before: Iterable[str], after: Iterable[str], key: Callable[[str], str]
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Group the names of both runs by a key."""
    groups: defaultdict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for side, names in enumerate((before, after)):
        for name in sorted(names):
            groups[key(name)][side].append(name)
    return [(tuple(old), tuple(new)) for _, (old, new) in sorted(groups.items())]


def _same_place(
    before: Mapping[str, KernelOfRun],
    after: Mapping[str, KernelOfRun],
    alone: tuple[list[str], list[str]],
    sequences: tuple[Sequence[str], Sequence[str]],
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Pair what stands between the same neighbours: one name of a family by one, else all by the one that took over."""
    lone = (set(alone[0]), set(alone[1]))
    if not all(lone) or not all(sequences) or max(map(len, sequences)) > LONGEST:
        return []
    # A name in one run only is compared by its position, so its key must not equal any other.
    keys = [[f"{side} {name}" if name in lone[side] else identity(name) for name in sequences[side]] for side in (0, 1)]
    places: dict[tuple[tuple[str, ...], tuple[str, ...]], None] = {}
    changes = SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes()
    if not any(tag == "equal" for tag, *_ in changes):
        return []  # two programs that have no kernel in common have no places either
    for tag, i1, i2, j1, j2 in changes:
        if tag == "replace":
            old = tuple(dict.fromkeys(name for name in sequences[0][i1:i2] if name in lone[0]))
            new = tuple(dict.fromkeys(name for name in sequences[1][j1:j2] if name in lone[1]))
            if old and new:
                places[old, new] = None
    pairs = []
    for old, new in places:
        old_left = [name for name in old if name in lone[0]]
        new_left = [name for name in new if name in lone[1]]
        for family in sorted({before[name].family for name in old_left} & {after[name].family for name in new_left}):
            one = [name for name in old_left if before[name].family == family]
            other = [name for name in new_left if after[name].family == family]
            # With something left over of other families it may be a fusion: then all of it belongs together.
            if len(one) == len(other) == 1 and (len(old_left) == 1) == (len(new_left) == 1):
                pairs.append((tuple(one), tuple(other)))
                old_left.remove(one[0])
                new_left.remove(other[0])
        if old_left and new_left and 1 in (len(old_left), len(new_left)):
            pairs.append((tuple(old_left), tuple(new_left)))
            old_left, new_left = [], []
        lone[0].difference_update(name for name in old if name not in old_left)
        lone[1].difference_update(name for name in new if name not in new_left)
    return pairs
