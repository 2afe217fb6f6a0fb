"""Match the kernels of two runs, although their names contain tiles, template arguments and numbers."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from nsys_insight.text.kernel_names import functor_of, make_readable, remove_file_hash, strip_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

# Calls per step that differ by less than this share are equal: one of many steps may lack a call.
CALLS_TOLERANCE = 0.01
# Longer sequences of kernels are not aligned: the time grows with the square of the length.
MAX_SEQUENCE_LENGTH = 2_000
# Warp puts a hash of a kernel's source into its name, Mojo one of the values of its parameters.
_HASH = re.compile(r"_[0-9a-f]{8}(?=_cuda_kernel_(?:forward|backward)$)|(?<=A6A)\w*_[0-9a-f]{16}$")


@dataclass(frozen=True)
class RunKernel:
    """A kernel of a run: its family, calls per step, registers per thread, and threads of a launch (mean)."""

    family: str
    calls: float
    registers: int | None = None
    threads: float | None = None


@dataclass(frozen=True)
class Match:
    """Kernels of two runs that do the same work.

    Attributes:
        before: Their names before; empty if the work is new.
        after: Their names after; empty if the work is gone.
        paired_by: "name" (the same names), "identity" (the same except tiles, types and numbers), "guess" (different
            names at the same position in the step); None for new or gone work.
        name: Name to display.
        family: Their family after; before if they are gone.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    paired_by: str | None
    name: str
    family: str


def normalize_name(name: str) -> str:
    """Return the part of a kernel's name without tiles, types and numbers: its base name and its functor's name.

    Numbers become #: `nvjet_sm90_tst_8x64_64x16` and `nvjet_sm90_tst_16x64_64x16` are both `nvjet_sm#_tst_#x#_#x#`.
    """
    text = make_readable(_HASH.sub("", remove_file_hash(name)))
    base_name = text.partition("<")[0] if not text.startswith("<") else text
    functor_name = re.split(r"::lambda", strip_types(functor_of(text)))[0]
    return re.sub(r"\d+", "#", f"{base_name}<{functor_name}>" if functor_name else base_name)


def match_kernels(
    before: Mapping[str, RunKernel],
    after: Mapping[str, RunKernel],
    sequences: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> list[Match]:
    """Pair the kernels of two runs. Each name is in one match.

    Names with equal calls per step in both runs are paired unchanged. The others are paired by identity, all variants
    together: a library that chooses other tiles distributes the same calls over other names. Kernels that are still
    unmatched are paired as a guess, by their position in the step between kernels of both runs.

    Args:
        before: The kernels of the first run by name.
        after: The kernels of the second run by name.
        sequences: For each run: the kernel names of a typical step in order; empty if there are no steps.
    """
    names_with_equal_calls = {
        name for name in before.keys() & after.keys() if _have_similar_calls(before[name].calls, after[name].calls)
    }
    name_groups = _group_by_key(
        before.keys() - names_with_equal_calls, after.keys() - names_with_equal_calls, normalize_name
    )
    matches = [Match((name,), (name,), "name", name, after[name].family) for name in names_with_equal_calls]
    unmatched: tuple[list[str], list[str]] = ([], [])
    for old, new in name_groups:
        if old and new:
            paired_by = "name" if old == new else "identity"
            name = new[0] if len({*old, *new}) == 1 else normalize_name(new[0])
            matches.append(Match(old, new, paired_by, name, after[new[0]].family))
        else:
            unmatched[0].extend(old)
            unmatched[1].extend(new)
    for old, new in _match_by_position(before, after, unmatched, sequences):
        name = " + ".join(map(normalize_name, old)) + " → " + " + ".join(map(normalize_name, new))
        matches.append(Match(old, new, "guess", name, after[new[0]].family))
        unmatched = (
            [name for name in unmatched[0] if name not in old],
            [name for name in unmatched[1] if name not in new],
        )
    matches += [Match((name,), (), None, name, before[name].family) for name in unmatched[0]]
    matches += [Match((), (name,), None, name, after[name].family) for name in unmatched[1]]
    return matches


def _have_similar_calls(first: float, second: float) -> bool:
    return abs(first - second) <= CALLS_TOLERANCE * max(first, second)


def _group_by_key(
    before: Iterable[str], after: Iterable[str], key: Callable[[str], str]
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Group the names of both runs by a key."""
    groups: defaultdict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for side, names in enumerate((before, after)):
        for name in sorted(names):
            groups[key(name)][side].append(name)
    return [(tuple(old), tuple(new)) for _, (old, new) in sorted(groups.items())]


def _match_by_position(
    before: Mapping[str, RunKernel],
    after: Mapping[str, RunKernel],
    unmatched_names: tuple[list[str], list[str]],
    sequences: tuple[Sequence[str], Sequence[str]],
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Pair unmatched kernels between the same neighbors.

    One kernel of a family is paired with one of the same family. Otherwise all are paired with the single kernel that
    replaced them.
    """
    unmatched = (set(unmatched_names[0]), set(unmatched_names[1]))
    if not all(unmatched) or not all(sequences) or max(map(len, sequences)) > MAX_SEQUENCE_LENGTH:
        return []
    # Unmatched names are compared by position, so their keys must differ from all others.
    keys = [
        [f"{side} {name}" if name in unmatched[side] else normalize_name(name) for name in sequences[side]]
        for side in (0, 1)
    ]
    candidates: dict[tuple[tuple[str, ...], tuple[str, ...]], None] = {}
    opcodes = SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes()
    if not any(tag == "equal" for tag, *_ in opcodes):
        return []  # without a common kernel, positions have no meaning
    for tag, i1, i2, j1, j2 in opcodes:
        if tag == "replace":
            old = tuple(dict.fromkeys(name for name in sequences[0][i1:i2] if name in unmatched[0]))
            new = tuple(dict.fromkeys(name for name in sequences[1][j1:j2] if name in unmatched[1]))
            if old and new:
                candidates[old, new] = None
    pairs = []
    for old, new in candidates:
        old_rest = [name for name in old if name in unmatched[0]]
        new_rest = [name for name in new if name in unmatched[1]]
        for family in sorted({before[name].family for name in old_rest} & {after[name].family for name in new_rest}):
            old_names = [name for name in old_rest if before[name].family == family]
            new_names = [name for name in new_rest if after[name].family == family]
            # If kernels of other families are left on one side, it may be a fusion: then all of them belong together.
            if len(old_names) == len(new_names) == 1 and (len(old_rest) == 1) == (len(new_rest) == 1):
                pairs.append((tuple(old_names), tuple(new_names)))
                old_rest.remove(old_names[0])
                new_rest.remove(new_names[0])
        if old_rest and new_rest and 1 in (len(old_rest), len(new_rest)):
            pairs.append((tuple(old_rest), tuple(new_rest)))
            old_rest, new_rest = [], []
        unmatched[0].difference_update(name for name in old if name not in old_rest)
        unmatched[1].difference_update(name for name in new if name not in new_rest)
    return pairs
