"""The ranks of a run in a diagnosis: which rank delays the others, and what of its waiting is not its own."""

from __future__ import annotations

from dataclasses import replace
from os.path import commonprefix
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.diagnose.findings import RunOfRanks
from nsys_insight.paths import query

if TYPE_CHECKING:
    from nsys_insight.diagnose.findings import Finding
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# From this share of a rank's exposed communication on it is worth a word that it waits for others there.
_SHARE = 0.1
_FEW = 2  # traces that a command names one by one
WAITING = "waiting for other ranks"


class DelayingRank(NamedTuple):
    """What is known of a run, and the session of the rank that delays the others."""

    run: RunOfRanks
    session: Session


def delaying_rank(trace: Session, steps: StepOptions) -> DelayingRank | None:
    """Look for the ranks of a run; None if there are none, or they share no collectives."""
    if len(trace.paths) == 1:
        # What kernels are called is looked at first, as it stands: most programs have none of NCCL.
        if not trace.dicts("SELECT 1 FROM strings WHERE contains(name, 'nccl') LIMIT 1"):
            return None
        (named,) = trace.dicts("SELECT count(*) AS names FROM kernel_names WHERE provenance = 'NCCL'")
        if not named["names"] or not trace.dicts(query("internal/diagnose/several_ranks"))[0]["has_ranks"]:
            return None
    found = trace.dicts(query("internal/diagnose/run"), steps)
    if not found:
        return None
    row = found[0]
    run = RunOfRanks(
        row["sentence"], row["verdict"], row["ranks"], row["rank"], row["waiting_share"], tuple(row["notes"])
    )  # fmt: skip
    path = trace.path if len(trace.paths) == 1 else trace.paths[trace.labels.index(row["trace"])]
    scope = {part: row[part] for part in ("process", "device") if row[part] is not None}
    return DelayingRank(run, trace.only(path, **scope))


def trace_arguments(trace: Session) -> list[str]:
    """Name the traces of a run as a person types them: by a pattern, where that fits just these."""
    paths = list(dict.fromkeys(trace.paths))
    first, *others = (path.name for path in paths)
    begins = commonprefix([first, *others])  # noqa: RUF071 - of names, not of paths
    ends = commonprefix([name[len(begins) :][::-1] for name in (first, *others)])[::-1]  # noqa: RUF071
    pattern = paths[0].parent / f"{begins}*{ends}"
    if len(paths) > _FEW and set(pattern.parent.glob(pattern.name)) == set(paths):
        return [str(pattern)]
    return [str(path) for path in paths]


def without_waiting(finding: Finding, run: RunOfRanks) -> Finding:
    """Leave of exposed communication what is transfer: only that can be hidden behind work."""
    if finding.name != "exposed-communication":
        return finding
    finding = replace(finding, caveat="The link is slow: collectives has the bandwidth.")
    if run.waiting_share < _SHARE:
        return finding
    share = 1 - run.waiting_share
    return replace(
        finding,
        recoverable_ns=finding.recoverable_ns and finding.recoverable_ns * share,
        wall_pct=finding.wall_pct and finding.wall_pct * share,
        evidence=(
            f"{finding.evidence}; {100 * run.waiting_share:.0f} % of that is {WAITING}, which overlap does not hide"
        ),
    )


def verdict_of_run(verdict: str, run: RunOfRanks) -> str:
    """Call by its name what looks like communication and is mostly waiting."""
    return verdict.replace("communication-bound", WAITING) if run.waiting_share > 0.5 else verdict
