"""The page of two runs: what changed between them, and a typical step of each on one time scale."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from nsys_insight.compare.answer import answer, describe_decision, tables
from nsys_insight.compare.comparison import compare
from nsys_insight.compare.measure import measure_runs
from nsys_insight.packs import flag_texts
from nsys_insight.page import html
from nsys_insight.page.tables import build_table
from nsys_insight.page.timeline import Timeline, build_timeline
from nsys_insight.text.cells import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session


def render_comparison(before: Session, after: Session, steps: StepOptions, limit: int | None = html.MAX_ROWS) -> str:
    """Compare two traces on one page, with at most `limit` rows in a table. None means all rows.

    Raises:
        TraceError: One of the traces has no CUDA events.
        UsageError: Steps cannot be found as the options say.
    """
    sides = (before, after)
    comparison = compare(*measure_runs([[side] for side in sides], steps))
    timelines = [build_timeline(side, steps) for side in sides]
    names = [printable(side.path.name) for side in sides]
    scope = before.describe_trace()["scope"]
    # Readers of a page do not have the author's folders.
    has_two_names = before.path.name != after.path.name
    paths = [side.path.name if has_two_names else str(side.path) for side in sides]
    command = flag_texts.write_command("diff", paths, scope, steps.explicit)
    return html.fill_template(
        "compare.html.j2",
        {"lines": _align_scales(timelines)},
        files=names,
        command=printable(command),
        decision=printable(describe_decision(comparison)),
        notes=[printable(note) for note in answer(comparison).notes],
        timelines=[
            {"picture": timeline, "file": name} for timeline, name in zip(timelines, names, strict=True) if timeline
        ],
        tables=[
            {"title": printable(section.title), "table": build_table(section, limit)} for section in tables(comparison)
        ],
        scope_flags=shlex.join(flag_texts.format_flags(scope, steps.explicit)),
    )


def _align_scales(timelines: Sequence[Timeline | None]) -> list[dict[str, Any]]:
    """Show a window of the same length in both timelines, so that lengths can be compared. Both move together."""
    data_sets = [timeline.data for timeline in timelines if timeline]
    longest = max((data["first"][1] - data["first"][0] for data in data_sets), default=0)
    return [
        data | {"view": [data["first"][0], data["first"][0] + longest], "together": len(data_sets) > 1}
        for data in data_sets
    ]
