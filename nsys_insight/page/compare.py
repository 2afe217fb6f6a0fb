"""The page of two runs: what changed between them, and a step of each that stands for the others, on one scale."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from nsys_insight.compare.answer import answer, decision_sentence, tables
from nsys_insight.compare.comparison import compare, different_work
from nsys_insight.compare.runs import measure, whole
from nsys_insight.packs import command_line
from nsys_insight.page import html
from nsys_insight.page.tables import table
from nsys_insight.page.timeline import timeline
from nsys_insight.text.cells import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.compare.runs import Run
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.page.timeline import Timeline
    from nsys_insight.session.session import Session


def page(before: Session, after: Session, steps: StepOptions, limit: int | None = html.ROWS) -> str:
    """Compare two traces on one page, with at most `limit` rows in a table, or all.

    Raises:
        TraceError: One of them has no CUDA events at all.
        UsageError: Steps cannot be found as the options say.
    """
    sides = (before, after)
    found = compare(*([run] for run in _runs(sides, steps)))
    lines = [timeline(side, steps) for side in sides]
    names = [printable(side.path.name) for side in sides]
    scope = before.about()["scope"]
    command = command_line.command("diff", [str(side.path) for side in sides], scope, steps.given)
    return html.rendered(
        "compare.html.j2",
        {"lines": _on_one_scale(lines)},
        files=names,
        command=printable(command),
        decision=printable(decision_sentence(found)),
        notes=[printable(note) for note in answer(found).notes],
        drawn=[{"picture": line, "file": name} for line, name in zip(lines, names, strict=True) if line],
        tables=[{"title": printable(one.title), "table": table(one, limit)} for one in tables(found)],
        narrowed=shlex.join(command_line.flags(scope, steps.given)),
    )


def _runs(sides: Sequence[Session], steps: StepOptions) -> list[Run]:
    """Measure both per step; or, where one has no steps or their steps are other work, both as wholes."""
    found = [run for side in sides if (run := measure(side, steps))]
    if len(found) == len(sides) and not different_work(*([run] for run in found)):
        return found
    return [whole(side) for side in sides]


def _on_one_scale(lines: Sequence[Timeline | None]) -> list[dict[str, Any]]:
    """Let both begin with as long a piece, so that what is longer looks so, and move together."""
    timelines = [line.data for line in lines if line]
    longest = max((data["first"][1] - data["first"][0] for data in timelines), default=0)
    return [
        data | {"view": [data["first"][0], data["first"][0] + longest], "together": len(timelines) > 1}
        for data in timelines
    ]
