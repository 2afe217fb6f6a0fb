"""The headline of a diagnosis: what bounds a run, what that costs, and what cannot be determined from the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.diagnose import text
from nsys_insight.diagnose.findings import Headline, Share, UnassessedQuestion
from nsys_insight.packs.notes import fill_note
from nsys_insight.paths import read_query
from nsys_insight.session.report_question import SCOPE_NOTE
from nsys_insight.text.templates import fill_template

if TYPE_CHECKING:
    from nsys_insight.diagnose.evaluate import AnsweredReports

# If the steady steps take less than this share of the wall time, the headline says what the rest is.
MOST_OF_TRACE = 0.5
NO_GPU_WORK = "no GPU work is in the trace"
# The verdicts on a trace that shows nothing about the speed of the program.
EMPTY_VERDICTS = (NO_GPU_WORK, text.LOST_KERNELS, text.FAILED_LAUNCHES)
# The notes of a report that are among those of a headline.
NOTES = {"classify": ("processes", "waiting", "node_tracing", "tokens", "video", SCOPE_NOTE)}
_EVENT_WAITS = "SELECT wait_call FROM _event_waits"
_TOP_KERNEL = """
SELECT name, sum(kernel_time_pct) AS pct FROM _steady_shapes
GROUP BY name HAVING pct IS NOT NULL ORDER BY pct DESC, name LIMIT 1"""


def list_queries() -> list[str]:
    """Return the queries whose reports a headline needs: of the shares, the steps and the unassessed questions."""
    return [read_query(f"internal/diagnose/{name}") for name in ("shares", "steps", "unjudged")]


def read_headline(reports: AnsweredReports) -> Headline:
    """Read the headline of a trace from the answers of its reports."""
    queries = list_queries()
    reports.add(["FROM classify_report", *queries])
    reports.prefetch(queries)
    share_query, step_query, unassessed_query = queries
    (steps,) = reports.read(step_query)
    source, ahead_pct, starts_late, graph_pct = (
        steps.pop(name) for name in ("source", "ahead_pct", "starts_late", "graph_pct")
    )
    program, kernel_loss = reports.program, reports.kernel_loss
    classify = reports.answers["classify"]
    wall = next((row for row in classify.dicts() if row["part"] == "wall"), {"verdict": None, "time_ns": None})
    lacks_kernels = any(kernel_loss)
    empty_verdict = text.FAILED_LAUNCHES if kernel_loss.fails_to_launch else text.LOST_KERNELS
    verdict, wall_ns = (empty_verdict, None) if lacks_kernels else (wall["verdict"], wall["time_ns"])
    if verdict and text.HOST_BOUND in verdict and reports.read(_EVENT_WAITS):
        verdict = verdict.replace(text.HOST_BOUND, text.WAITING_FOR_EVENTS)
    if verdict and starts_late:
        verdict = verdict.replace(text.LAUNCH_BOUND, text.STARTING_LATE)
    return Headline(
        framework=program.framework,
        verdict=verdict or NO_GPU_WORK,
        unit=program.unit,
        wall_ns=wall_ns,
        tokens_per_s=1e9 / wall_ns if wall_ns and program.has_steps else None,
        shares=() if lacks_kernels else tuple(Share(**row) for row in reports.read(share_query)),
        steps={
            **steps,
            "doubted": fill_note("step_doubt", source) or None,
            "unsteady": fill_note("step_spread", source) or None,
            "drifting": fill_note("step_drift", source) or None,
            "interrupted": fill_note("step_interruptions", source) or None,
            **_describe_rest(reports, steps),
        },
        step_source=fill_note("step_source", source) or None,
        ahead_pct=ahead_pct,
        graph_pct=graph_pct,
        unprofiled=reports.unprofiled,
        unprofiled_verdict=wall.get("unprofiled_verdict"),
        unassessed=tuple(
            UnassessedQuestion(fill_template([row["subject"]], row), row["remedy"])
            for row in reports.read(unassessed_query)
        ),
        top_kernel=next(((row["name"], row["pct"]) for row in reports.read(_TOP_KERNEL)), None),
        notes=_collect_notes(reports, is_empty=wall_ns is None and not kernel_loss.fails_to_launch),
    )


def _describe_rest(reports: AnsweredReports, steps: dict[str, Any]) -> dict[str, Any]:
    """Describe the time outside the steps if it is most of the trace, and the other loops of the program."""
    description: dict[str, Any] = {}
    if steps["steps_ns"] and steps["steps_ns"] < MOST_OF_TRACE * steps["wall_ns"]:
        description["outside"] = next(iter(reports.read(read_query("internal/diagnose/outside"))), None)
    # Steps that NVTX ranges give need no search for loops.
    if steps["steps_ns"] and steps["method"] == "sequence":
        description["other_loops"] = reports.read(read_query("internal/diagnose/other_loops"))
    return description


def _collect_notes(reports: AnsweredReports, *, is_empty: bool) -> tuple[str, ...]:
    """Return notes on other processes and on tokens that do not fit.

    For an empty scope, they say where the GPU work is; for a trace without GPU work, what else it has.
    """
    notes = tuple(
        note for report, names in NOTES.items() for name in names for note in reports.answers[report].notes_named(name)
    )
    unprofiled = reports.unprofiled
    if unprofiled and unprofiled.misfit:
        notes = (*notes, unprofiled.misfit)
    if not is_empty:
        return notes
    location_note = reports.trace.describe_gpu_time().removeprefix("; ")
    if reports.trace.describe_trace()["scope"]:
        return (*notes, location_note) if location_note else notes
    contents = (fill_note("contents", row) for row in reports.read(read_query("internal/diagnose/contents")))
    return (*notes, *filter(None, (location_note, *contents)))
