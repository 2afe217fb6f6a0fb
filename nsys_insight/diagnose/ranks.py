"""The ranks of a run in a diagnosis: which rank delays the others, and how much of its communication is waiting."""

from __future__ import annotations

from os.path import commonprefix
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.diagnose.findings import RunOfRanks
from nsys_insight.errors import UsageError
from nsys_insight.packs.notes import fill_note, unite_queries
from nsys_insight.paths import read_query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

_MAX_LISTED_TRACES = 2  # a command lists up to this number of traces; for more it uses a pattern
WAITING = "waiting for other ranks"


class DelayingRank(NamedTuple):
    """A run of ranks, and the session of the rank that delays the others."""

    run: RunOfRanks
    session: Session


def find_delaying_rank(trace: Session, steps: StepOptions) -> DelayingRank | None:
    """Find the rank that delays the others. None if the trace has no ranks, or they share no collectives.

    Raises:
        UsageError: There are several traces, but they are not the ranks of one run.
    """
    if len(trace.paths) == 1:
        if not trace.dicts(read_query("internal/diagnose/communicates"), is_built_in=True):
            return None
        if not trace.dicts(read_query("internal/diagnose/several_ranks"), is_built_in=True)[0]["has_ranks"]:
            return None
    run_rows = trace.dicts(read_query("internal/diagnose/run"), steps, is_built_in=True)
    if not run_rows:
        if len(trace.paths) > 1:
            raise UsageError(
                f"several traces are diagnosed only as the ranks of one run: {_explain_no_run(trace, steps)}",
                "name one of them; to compare two: nsys-insight diff BEFORE AFTER",
            )
        return None
    run_row = run_rows[0]
    run = RunOfRanks(
        f"{run_row['ranks']} ranks: {fill_note('diagnosed_run', run_row)}",
        run_row["verdict"],
        run_row["ranks"],
        run_row["rank"],
        run_row["waiting_share"],
        tuple(_read_notes(trace, steps, ("groups", "pipeline", "clock", "doubled", "missing", "unmatched"))),
    )
    path = trace.path if len(trace.paths) == 1 else trace.paths[trace.labels.index(run_row["trace"])]
    scope = {part: run_row[part] for part in ("process", "device") if run_row[part] is not None}
    return DelayingRank(run, trace.select_trace(path, **scope))


def _explain_no_run(trace: Session, steps: StepOptions) -> str:
    """Say why several traces are not diagnosed as the ranks of a run."""
    rows = trace.dicts("SELECT ranks FROM rank_run", steps)
    if not rows:
        return "no NCCL kernels are in these traces, and no MPI collectives (-t mpi) of processes that use a GPU"
    if sentences := _read_notes(trace, steps, ("unmatched",)):
        return sentences[0]
    if rows[0]["ranks"] == 1:
        return "only one of these traces has NCCL kernels or MPI collectives"
    return "too few collectives are in these traces: no step begins and ends with one that all ranks have"


def _read_notes(trace: Session, steps: StepOptions, names: Sequence[str]) -> list[str]:
    """Read the sentences of shared notes about the run."""
    rows = trace.dicts(unite_queries(names), steps)
    return [text for name in names for row in rows if row["note_"] == name and (text := fill_note(name, row))]


def write_trace_arguments(trace: Session) -> list[str]:
    """Write the traces of a run as command arguments: as a pattern if it matches exactly these files."""
    paths = list(dict.fromkeys(trace.paths))
    first_name, *other_names = (path.name for path in paths)
    prefix = commonprefix([first_name, *other_names])  # noqa: RUF071 - of names, not of paths
    suffix = commonprefix([name[len(prefix) :][::-1] for name in (first_name, *other_names)])[::-1]  # noqa: RUF071
    pattern = paths[0].parent / f"{prefix}*{suffix}"
    if len(paths) > _MAX_LISTED_TRACES and set(pattern.parent.glob(pattern.name)) == set(paths):
        return [str(pattern)]
    return [str(path) for path in paths]


def rename_verdict(verdict: str, run: RunOfRanks) -> str:
    """Rename a communication-bound verdict if the communication is mostly waiting for other ranks."""
    return verdict.replace("communication-bound", WAITING) if run.waiting_share > 0.5 else verdict
