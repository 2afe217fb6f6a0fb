"""Choose the launches to profile without a trace: ncu itself first times all launches, with one metric."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import TraceError, UsageError
from nsys_insight.ncu.plan import choose_sections, find_shortest_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.ncu.data import NcuData

# Launches that are timed. Later ones repeat earlier ones.
_MAX_LAUNCHES = 2_000
# Names of kernels that wait for other ranks. ncu runs and replays one kernel at a time,
# so they would wait forever.
_COLLECTIVES = r"[nN][cC][cC][lL]|nvshmem|cross_device_reduce|[aA]ll_?[rR]educe|[aA]ll_?[gG]ather|[rR]educe_?[sS]catter"
_COMMON_OPTIONS = (
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


def build_survey_options(report: str, *, collectives: bool = False) -> list[str]:
    """Return the ncu options that time every launch into a report. Collectives are left out unless requested."""
    return [
        *_COMMON_OPTIONS,
        *([] if collectives else ["--kernel-name", f"regex:^(?!.*({_COLLECTIVES}))"]),
        "--metrics", "gpu__time_duration.sum", "--launch-count", str(_MAX_LAUNCHES), "--export", report,
    ]  # fmt: skip


def build_profile_options(choice: Choice, report: str, *, collectives: bool = False) -> list[str]:
    """Return the ncu options that profile the chosen launches, with all metrics that their number allows."""
    names = "|".join(map(re.escape, choice.names))
    return [
        *_COMMON_OPTIONS,
        "--set", choose_sections(choice.count), "--import-source", "yes",
        *(["--replay-mode", "application"] if collectives else []),
        "--kernel-name", f"regex:^({names})$",
        "--launch-skip", str(choice.skip), "--launch-count", str(choice.count), "--export", report,
    ]  # fmt: skip


def choose_launches(ncu_data: NcuData, kernels: Sequence[str], top: int) -> Choice:
    """Choose the `top` kernels that took most time, and the launches to profile. `kernels` filters by part of the name.

    The launches are the shortest run that contains all of these kernels. The run is in the second half of the survey
    if possible: there, caches are warm and sizes are stable.

    Raises:
        TraceError: Nothing was timed.
        UsageError: No kernel has such a name.
    """
    rows = ncu_data.rows(
        """SELECT process_id, short_name, kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, duration_ns
           FROM ncu_kernels ORDER BY process_id, ncu_id"""
    )
    if not rows:
        raise TraceError("ncu timed no kernel", "does the program launch kernels on this machine?")
    ns_by_shape: dict[tuple[Any, ...], float] = {}
    for row in rows:
        if not kernels or any(word.lower() in row["kernel"].lower() for word in kernels):
            key = _get_shape(row)
            ns_by_shape[key] = ns_by_shape.get(key, 0) + (row["duration_ns"] or 0)
    if not ns_by_shape:
        kernel_names = ", ".join(dict.fromkeys(row["short_name"] for row in rows[:40]))
        raise UsageError(f"no kernel's name contains {' or '.join(map(repr, kernels))}", f"there are: {kernel_names}")
    top_shapes = sorted(ns_by_shape, key=lambda key: -ns_by_shape[key])[:top]
    process = top_shapes[0][0]  # ncu counts the launches of each process separately
    top_shapes = [key for key in top_shapes if key[0] == process]
    names = tuple(dict.fromkeys(key[1] for key in top_shapes))
    filtered_shapes = [_get_shape(row) for row in rows if row["process_id"] == process and row["short_name"] in names]
    top_launches = [(index, shape) for index, shape in enumerate(filtered_shapes) if shape in top_shapes]
    second_half = [pair for pair in top_launches if pair[0] >= len(filtered_shapes) // 2]
    shortest_runs = (find_shortest_run(launches, len(top_shapes)) for launches in (second_half, top_launches))
    first, last = next(filter(None, shortest_runs), (0, len(filtered_shapes) - 1))
    return Choice(names, first, last - first + 1)


def _get_shape(row: dict[str, Any]) -> tuple[Any, ...]:
    dimensions = (row[f"{kind}_{axis}"] for kind in ("grid", "block") for axis in "xyz")
    return (row["process_id"], row["short_name"], *dimensions)
