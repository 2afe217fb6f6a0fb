"""Which launches to profile where there is no trace: ncu itself times all of them once, by one metric."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import TraceError, UsageError
from nsys_insight.ncu.plan import sections_for, shortest_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.ncu.data import NcuData

# Launches that are timed: what a program does later repeats what it did before.
_SURVEYED = 2_000
# Names of kernels that wait for other ranks: ncu runs one kernel at a time, and replays it.
_COLLECTIVES = r"[nN][cC][cC][lL]|nvshmem|cross_device_reduce|[aA]ll_?[rR]educe|[aA]ll_?[gG]ather|[rR]educe_?[sS]catter"
_COMMON = (
    "--target-processes",
    "all",
    "--clock-control",
    "none",
    "--kernel-name-base",
    "function",
    "--force-overwrite",
)


@dataclass(frozen=True)
class Choice:
    """The launches to profile: those whose function has one of `names`, `count` of them after the first `skip`."""

    names: tuple[str, ...]
    skip: int
    count: int


def survey_options(report: str, *, collectives: bool = False) -> list[str]:
    """Return the options that time every launch, but for collectives, into a report."""
    return [
        *_COMMON,
        *([] if collectives else ["--kernel-name", f"regex:^(?!.*({_COLLECTIVES}))"]),
        "--metrics", "gpu__time_duration.sum", "--launch-count", str(_SURVEYED), "--export", report,
    ]  # fmt: skip


def profile_options(choice: Choice, report: str, *, collectives: bool = False) -> list[str]:
    """Return the options that profile the launches of a choice, with all metrics that so many allow."""
    names = "|".join(map(re.escape, choice.names))
    return [
        *_COMMON,
        "--set", sections_for(choice.count), "--import-source", "yes",
        *(["--replay-mode", "application"] if collectives else []),
        "--kernel-name", f"regex:^({names})$",
        "--launch-skip", str(choice.skip), "--launch-count", str(choice.count), "--export", report,
    ]  # fmt: skip


def choose(measured: NcuData, kernels: Sequence[str], top: int) -> Choice:
    """Choose the kernels that took most time (of those whose name contains one of `kernels`), and where.

    That is the shortest run of launches that has all of them, in the second half of the survey if it can be: there,
    caches are warm and sizes are settled.

    Raises:
        TraceError: Nothing was timed.
        UsageError: No kernel has such a name.
    """
    rows = measured.rows(
        """SELECT process_id, short_name, kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, duration_ns
           FROM ncu_kernels ORDER BY process_id, ncu_id"""
    )
    if not rows:
        raise TraceError("ncu timed no kernel", "does the program launch kernels on this machine?")
    spent: dict[tuple[Any, ...], float] = {}
    for row in rows:
        if not kernels or any(word.lower() in row["kernel"].lower() for word in kernels):
            key = _shape(row)
            spent[key] = spent.get(key, 0) + (row["duration_ns"] or 0)
    if not spent:
        known = ", ".join(dict.fromkeys(row["short_name"] for row in rows[:40]))
        raise UsageError(f"no kernel's name contains {' or '.join(map(repr, kernels))}", f"there are: {known}")
    wanted = sorted(spent, key=lambda key: -spent[key])[:top]
    process = wanted[0][0]  # ncu counts the launches of each process by themselves
    wanted = [key for key in wanted if key[0] == process]
    names = tuple(dict.fromkeys(key[1] for key in wanted))
    counted = [_shape(row) for row in rows if row["process_id"] == process and row["short_name"] in names]
    matching = [(index, shape) for index, shape in enumerate(counted) if shape in wanted]
    second_half = [pair for pair in matching if pair[0] >= len(counted) // 2]
    runs = (shortest_run(launches, len(wanted)) for launches in (second_half, matching))
    first, last = next(filter(None, runs), (0, len(counted) - 1))
    return Choice(names, first, last - first + 1)


def _shape(row: dict[str, Any]) -> tuple[Any, ...]:
    dimensions = (row[f"{what}_{axis}"] for what in ("grid", "block") for axis in "xyz")
    return (row["process_id"], row["short_name"], *dimensions)
