"""The facts about the ranks of a run: found trace by trace, put together, and written down for all traces at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.facts import rank_numbers
from nsys_insight.facts.ranks import judge, messages, pipeline, rank, run
from nsys_insight.facts.ranks.budget import Busy, Spent, host_in
from nsys_insight.facts.ranks.sentences import (
    ONLY_MESSAGES,
    clock_said,
    doubled_said,
    missing_said,
    pipeline_said,
    unmatched_said,
)
from nsys_insight.facts.ranks.write import Windows, Writer
from nsys_insight.facts.reading import read_columns
from nsys_insight.ingest import several
from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.rows import named_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.context import Context
    from nsys_insight.facts.ranks.judge import Table, Verdict
    from nsys_insight.facts.ranks.messages import Messages
    from nsys_insight.facts.ranks.rank import Ints
    from nsys_insight.facts.ranks.run import Run


# Of so many steps in which a rank is late, the longest delays, it is looked up what its host did.
_LOOKED_AT = 64


def fill(context: Context) -> None:
    """Fill the tables of `queries/facts/ranks/tables.sql`."""
    ranks, began, told, alike = rank_numbers.known(context)
    if not ranks:
        return
    found = run.run_of(ranks, began) if len(ranks) > 1 else None
    writer = Writer(context.connection, told)
    writer.ranks(ranks, context.labels, found, began, rank.places(context, ranks))
    if found is None:
        only_sent = all(set(one.operation) <= rank.NOT_OF_ALL for one in ranks)
        writer.run(
            ranks=len(ranks), numbered_by=told.by, doubled=doubled_said(told, alike),
            unmatched=ONLY_MESSAGES if only_sent and len(ranks) > 1 else None,
        )  # fmt: skip
        return
    windows = _windows(context, found)
    members = found.main.group.ranks
    sent = messages.matched(context, ranks, told.numbers, found.clocks)
    spent = [_spent(context, found, at, windows, sent) for at in members]
    wall, busy, waiting, transfer, idle = (
        _columns([getattr(one, name) for one in spent]) for name in ("wall", "busy", "waiting", "transfer", "idle")
    )
    stages = pipeline.rows(sent, ranks, {at: _edges(found, at, windows) for at in members}) if len(wall) else None
    is_uneven = stages is not None or not sent.matched or not pipeline.is_even(sent, members)
    by_itself = is_uneven and pipeline.matter(ranks, members, wall)
    verdict = (pipeline.judge_by_itself if by_itself else judge.judge)(wall, waiting, transfer, found.error)
    writer.collectives(found, windows)
    writer.messages(found, sent)
    writer.steps(found, windows, spent, verdict)
    for column in verdict.late:
        why = (pipeline.delay_of_itself if by_itself else judge.delay)(busy, idle, verdict, column)
        one, host, where = found.ranks[members[column]], None, None
        if why.cause in ("host", "both"):
            gaps = _gaps(found, windows, spent[column], verdict, column)
            host, where = host_in(context, one, gaps)
        writer.delay(members[column], why, host, where)
    writer.run(
        verdict=verdict.kind if len(windows.step) else None, compared_with="itself" if by_itself else "others",
        stages=stages and stages.stages, stage_messages=stages and stages.messages,
        bubble_pct=100 * pipeline.bubble(wall, waiting, verdict.late_ns) if stages else None,
        unit=windows.unit, steps=len(windows.step), ranks=len(members), error_ns=round(found.error),
        numbered_by=told.by, clock=clock_said(found, began), missing=missing_said(told),
        unmatched=unmatched_said(found, told, windows.counted_by, has_messages=by_itself and not sent.matched),
        pipeline=pipeline_said(stages, told, members, (wall, busy, waiting, verdict.late_ns)),
        doubled=doubled_said(told, alike),
    )  # fmt: skip


def _windows(context: Context, found: Run) -> Windows:
    """Divide the collectives of the main group by the steps of one of its ranks; one by one where none has steps."""
    import numpy as np

    main = found.main
    rows = np.flatnonzero(main.whole)
    steps = query("facts/ranks/steps")
    for column, number in enumerate(main.group.ranks):
        one = found.ranks[number]
        if column and one.trace != found.ranks[main.group.ranks[0]].trace:
            break  # the others' steps are those of the first trace
        catalog = context.catalogs[one.trace]
        context.of_trace(catalog).prepare(steps)
        with several.inside(context.connection, catalog):
            known = [step for step in named_rows(context.connection, steps) if step.process_id == one.process_id]
        if known:
            starts, ends = (np.array([getattr(step, name) for step in known]) for name in ("start_ns", "end_ns"))
            begun = one.start[main.group.at[rows, column]]
            at = np.searchsorted(starts, begun, side="right") - 1
            inside = (at >= 0) & (begun < ends[at])
            names = np.array([step.step for step in known], dtype=np.int64)
            step_of = np.where(inside, names[at], -1)
            return _cut("step", main.whole, rows, step_of, number)
    return _cut("collective", main.whole, rows, np.arange(len(rows)))


def _cut(unit: str, whole: Any, rows: Ints, step_of: Ints, counted_by: int | None = None) -> Windows:
    import numpy as np

    begins = np.flatnonzero(np.diff(step_of, prepend=-2))
    ends = np.append(begins[1:], len(step_of)) - 1
    # Before the first collective nobody knows when the ranks were together.
    kept = (step_of[begins] >= 0) & (begins > 0)
    of_all = np.full(len(whole), -1, dtype=np.int64)
    of_all[rows] = step_of
    return Windows(unit, step_of[begins][kept], rows[begins[kept] - 1], rows[ends[kept]], of_all, counted_by)


def _spent(context: Context, found: Run, number: int, windows: Windows, sent: Messages) -> Spent:
    """Tell what a rank's time went to in each step, in its own trace's time."""
    import numpy as np

    one = found.ranks[number]
    statement = bind(query("facts/ranks/work"), {"process": one.process_id, "gpu": one.gpu_id})
    catalog = context.catalogs[one.trace]
    context.of_trace(catalog).prepare(statement)
    with several.inside(context.connection, catalog):
        work = read_columns(context.connection, statement)
    waiting = sent.waiting[number].copy()
    for of in found.collectives:
        if number in of.group.ranks:
            column = of.group.ranks.index(number)
            rows = np.flatnonzero(of.whole)
            waiting[of.group.at[rows, column]] = of.waiting[rows, column]
    waited = one.start + waiting
    busy = Busy([work["start_ns"].astype(np.int64)], [work["end_ns"].astype(np.int64)])
    return Spent(busy, (one.start, waited), (waited, one.end), _edges(found, number, windows))


def _edges(found: Run, number: int, windows: Windows) -> tuple[Ints, Ints]:
    """When the steps begin and end on a rank of the main group, in its own trace's time."""
    at = found.main.group.at[:, found.main.group.ranks.index(number)]
    ends = found.ranks[number].end
    return ends[at[windows.first]], ends[at[windows.last]]


def _gaps(found: Run, windows: Windows, spent: Spent, verdict: Verdict, column: int) -> list[tuple[int, int]]:
    """The longest gaps of a rank's GPU in the steps in which it is late, one of each, in its own trace's time."""
    import numpy as np

    ends = found.ranks[found.main.group.ranks[column]].end[found.main.group.at[:, column]]
    late = verdict.late_ns[:, column]
    steps = [at for at in np.argsort(-late, kind="stable")[:_LOOKED_AT] if late[at] > 0]
    return [
        gap for at in steps for gap in spent.all.gaps(int(ends[windows.first[at]]), int(ends[windows.last[at]]))[:1]
    ]


def _columns(of_ranks: Sequence[Ints]) -> Table:
    import numpy as np

    table: Table = np.column_stack(of_ranks)
    return table
