"""The facts about the ranks of a run: found trace by trace, put together, and written down for all traces at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from nsys_insight.facts.ranks import judge, numbers, place, rank, run
from nsys_insight.facts.ranks.budget import Busy, Spent
from nsys_insight.facts.ranks.sentences import clock_said, missing_said, unmatched_said
from nsys_insight.ingest import several
from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.rows import insert, named_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb

    from nsys_insight.facts.ranks.judge import Verdict
    from nsys_insight.facts.ranks.numbers import Numbered
    from nsys_insight.facts.ranks.rank import Ints, Rank
    from nsys_insight.facts.ranks.run import Collectives, Run


    class Prepare(Protocol):
        """Creates the views that a statement names, and finds the facts that these show, in traces by their catalogs."""

        def __call__(self, sql: str, among: Sequence[str]) -> None: ...

# Of so many steps in which a rank is late, the longest delays, it is looked up what its host did.
_LOOKED_AT = 64


@dataclass(frozen=True)
class _Windows:
    """Steps of a run: `step` are their numbers, from the end of the last collective before to that of their own last.

    `first` and `last` are rows of the collectives of the main group. `step_of` has the step of each row, -1 for none.
    """

    unit: str
    step: Ints
    first: Ints
    last: Ints
    step_of: Ints


def fill(
    connection: duckdb.DuckDBPyConnection, parts: Sequence[str], labels: Sequence[str], prepare: Prepare
) -> None:
    """Fill the tables of `queries/facts/ranks/tables.sql`, in the connection's own catalog.

    Args:
        connection: Where the model is.
        parts: The catalogs in which the traces have theirs.
        labels: What the traces are called.
        prepare: Creates the views that a statement names, and finds the facts that these show.
    """
    ranks, began, by_nccl, environments = _read(connection, parts, prepare)
    if not ranks:
        return
    told = numbers.numbered(ranks, labels, by_nccl, environments)
    found = run.run_of(ranks, began) if len(ranks) > 1 else None
    _write_ranks(connection, ranks, labels, told, found, began)
    if found is None:
        _write_run(connection, {"ranks": len(ranks), "numbered_by": told.by})
        return
    windows = _windows(connection, parts, found, prepare)
    _write_collectives(connection, found, told, windows)
    spent = {number: _spent(connection, parts, found, number, windows, prepare) for number in found.main.group.ranks}
    verdict = _write_steps(connection, found, told, windows, spent)
    _write_delays(connection, parts, found, told, verdict, spent, windows, prepare)
    insert_run = {
        "verdict": verdict.kind if len(windows.step) else None,
        "unit": windows.unit, "steps": len(windows.step), "ranks": len(found.main.group.ranks),
        "error_ns": round(found.error), "numbered_by": told.by, "clock": clock_said(found, began),
        "missing": missing_said(told), "unmatched": unmatched_said(found, told),
    }  # fmt: skip
    _write_run(connection, insert_run)


def _read(
    connection: duckdb.DuckDBPyConnection, parts: Sequence[str], prepare: Prepare
) -> tuple[list[Rank], list[int | None], dict[tuple[int, int], tuple[int, int]], list[dict[str, int]]]:
    """Read the ranks of the traces, when these began, and what is said of which rank is which."""
    statements = {name: query(f"facts/ranks/{name}") for name in ("kernels", "began", "numbers", "environment")}
    for statement in statements.values():
        prepare(statement, parts)
    ranks: list[Rank] = []
    began: list[int | None] = []
    by_nccl: dict[tuple[int, int], tuple[int, int]] = {}
    environments = []
    for number, part in enumerate(parts):
        with several.inside(connection, part):
            ranks += rank.of_rows(number, named_rows(connection, statements["kernels"]))
            began.append(connection.execute(statements["began"]).fetchall()[0][0])
            for said in named_rows(connection, statements["numbers"]):
                by_nccl[number, said.process_id] = said.rank, said.ranks
            environments.append(dict(connection.execute(statements["environment"]).fetchall()))
    return ranks, began, by_nccl, environments


def _windows(connection: duckdb.DuckDBPyConnection, parts: Sequence[str], found: Run, prepare: Prepare) -> _Windows:
    """Divide the collectives of the main group by the steps of one of its ranks; one by one where none has steps."""
    import numpy as np

    main = found.main
    rows = np.flatnonzero(main.whole)
    steps = query("facts/ranks/steps")
    for column, number in enumerate(main.group.ranks):
        one = found.ranks[number]
        if column and one.trace != found.ranks[main.group.ranks[0]].trace:
            break  # the others' steps are those of the first trace
        prepare(steps, [parts[one.trace]])
        with several.inside(connection, parts[one.trace]):
            known = [step for step in named_rows(connection, steps) if step.process_id == one.process_id]
        if known:
            starts, ends = (np.array([getattr(step, name) for step in known]) for name in ("start_ns", "end_ns"))
            begun = one.start[main.group.at[rows, column]]
            at = np.searchsorted(starts, begun, side="right") - 1
            inside = (at >= 0) & (begun < ends[at])
            names = np.array([step.step for step in known], dtype=np.int64)
            step_of = np.where(inside, names[at], -1)
            return _cut("step", main.whole, rows, step_of)
    return _cut("collective", main.whole, rows, np.arange(len(rows)))


def _cut(unit: str, whole: Any, rows: Ints, step_of: Ints) -> _Windows:
    import numpy as np

    begins = np.flatnonzero(np.diff(step_of, prepend=-2))
    ends = np.append(begins[1:], len(step_of)) - 1
    # Before the first collective nobody knows when the ranks were together.
    kept = (step_of[begins] >= 0) & (begins > 0)
    of_all = np.full(len(whole), -1, dtype=np.int64)
    of_all[rows] = step_of
    return _Windows(unit, step_of[begins][kept], rows[begins[kept] - 1], rows[ends[kept]], of_all)


def _spent(  # noqa: PLR0913, PLR0917 - a rank, its trace, and its windows
    connection: duckdb.DuckDBPyConnection, parts: Sequence[str], found: Run, number: int, windows: _Windows, prepare: Prepare
) -> Spent:
    """Tell what a rank's time went to in each step, in its own trace's time."""
    import numpy as np

    one = found.ranks[number]
    statement = bind(query("facts/ranks/work"), {"process": one.process_id, "gpu": one.gpu_id})
    prepare(statement, [parts[one.trace]])
    with several.inside(connection, parts[one.trace]):
        work = connection.execute(statement).fetchnumpy()
    waiting = np.zeros(len(one.start), dtype=np.int64)
    for of in found.collectives:
        if number in of.group.ranks:
            column = of.group.ranks.index(number)
            rows = np.flatnonzero(of.whole)
            waiting[of.group.at[rows, column]] = of.waiting[rows, column]
    waited = one.start + waiting
    column = found.main.group.ranks.index(number)
    at = found.main.group.at[:, column]
    edges = one.end[at[windows.first]], one.end[at[windows.last]]
    busy = Busy([work["start_ns"].astype(np.int64)], [work["end_ns"].astype(np.int64)])
    return Spent(busy, (one.start, waited), (waited, one.end), edges)


def _write_ranks(  # noqa: PLR0913, PLR0917 - what is known of ranks
    connection: duckdb.DuckDBPyConnection, ranks: Sequence[Rank], labels: Sequence[str], told: Numbered, found: Run | None,
    began: Sequence[int | None],
) -> None:  # fmt: skip
    rows = []
    for at, one in enumerate(ranks):
        clock = found.clocks.get(one.trace) if found else None
        first = found.ranks[found.main.group.ranks[0]].trace if found else one.trace
        known = (began[first], began[one.trace])
        offset = None
        if clock is not None and None not in known:
            offset = clock.offset + (known[1] or 0) - (known[0] or 0)
        rows.append({
            "rank": told.numbers[at], "trace": labels[one.trace], "process_id": one.process_id, "device_id": one.device_id,
            "gpu_id": one.gpu_id, "nccl_kernels": len(one.start), "nccl_ns": int((one.end - one.start).sum()),
            "clock_offset_ns": offset, "clock_drift_ppm": clock.drift * 1e6 if clock else None,
        })  # fmt: skip
    insert(connection, "facts.ranks", rows)


def _write_run(connection: duckdb.DuckDBPyConnection, said: dict[str, Any]) -> None:
    insert(connection, "facts.rank_run", [said])


def _write_collectives(connection: duckdb.DuckDBPyConnection, found: Run, told: Numbered, windows: _Windows) -> None:
    """Write the collectives of all groups, numbered in order of time."""
    import numpy as np

    far = np.iinfo(np.int64).max
    number = 0
    for of in found.collectives:
        group, seen = of.group, of.group.at >= 0
        start = np.where(seen, of.start, far).min(axis=1)
        arrived, ended = np.where(seen, of.start, -far).max(axis=1), np.where(seen, of.end, far).min(axis=1)
        column = seen.argmax(axis=1)
        kernel = group.at[np.arange(len(group.at)), column]
        ranks = [found.ranks[at] for at in group.ranks]
        ids = number + np.arange(len(start))
        number += len(start)
        rows = np.arange(len(start))
        who = np.array([told.numbers[at] for at in group.ranks])
        sizes = np.max([np.where(seen[:, at], one.size[group.at[:, at]], -1) for at, one in enumerate(ranks)], axis=0)
        is_main = of is found.main
        _register(connection, "facts.collectives", {
            "collective": ids,
            "communicator": np.array([group.name] * len(rows), dtype=object),
            "operation": np.array([ranks[column[at]].operation[kernel[at]] for at in rows], dtype=object),
            "bytes": sizes, "ranks": np.full(len(rows), len(ranks)), "seen_ranks": seen.sum(axis=1),
            "step": windows.step_of if is_main and windows.unit == "step" else np.full(len(rows), -1),
            "start_ns": start, "arrived_ns": arrived, "end_ns": ended, "skew_ns": arrived - start,
            "transfer_ns": np.maximum(ended - arrived, 0), "waiting_ns": of.waiting.sum(axis=1),
            "last_rank": who[np.where(seen, of.start, -far).argmax(axis=1)], "whole": of.whole,
        }, """* EXCLUDE (whole) REPLACE (
            CASE WHEN NOT starts_with(communicator, 'stream ') THEN communicator END AS communicator, nullif(operation, '') AS operation,
            nullif(bytes, -1) AS bytes, nullif(step, -1) AS step, CASE WHEN whole THEN arrived_ns END AS arrived_ns,
            CASE WHEN whole THEN skew_ns END AS skew_ns, CASE WHEN whole THEN transfer_ns END AS transfer_ns,
            CASE WHEN whole THEN waiting_ns END AS waiting_ns,
            CASE WHEN whole AND skew_ns > {error} THEN last_rank END AS last_rank
        )""".format(error=round(found.error)))  # fmt: skip
        for at in range(len(ranks)):
            there = np.flatnonzero(seen[:, at])
            _register(connection, "facts.collective_ranks", {
                "collective": ids[there], "rank": np.full(len(there), who[at]), "start_ns": of.start[there, at],
                "end_ns": of.end[there, at], "waiting_ns": of.waiting[there, at], "whole": of.whole[there],
            }, "* EXCLUDE (whole) REPLACE (CASE WHEN whole THEN waiting_ns END AS waiting_ns)")  # fmt: skip


def _write_steps(
    connection: duckdb.DuckDBPyConnection, found: Run, told: Numbered, windows: _Windows, spent: dict[int, Spent]
) -> Verdict:
    import numpy as np

    members = found.main.group.ranks
    wall, waiting, transfer = (
        np.column_stack([getattr(spent[at], name) for at in members]) for name in ("wall", "waiting", "transfer")
    )
    verdict = judge.judge(wall, waiting, transfer, found.error)
    for column, number in enumerate(members):
        one = spent[number]
        starts = found.main.end[windows.first, column]
        _register(connection, "facts.rank_steps", {
            "step": windows.step, "rank": np.full(len(starts), told.numbers[number]), "start_ns": starts, "wall_ns": one.wall,
            "busy_ns": one.busy, "waiting_ns": one.waiting, "transfer_ns": one.transfer, "idle_ns": one.idle,
            "late_ns": verdict.late_ns[:, column] if verdict.kind != "even" else np.zeros(len(starts), dtype=np.int64),
        })  # fmt: skip
    return verdict


def _write_delays(  # noqa: PLR0913, PLR0917 - what is known of the run
    connection: duckdb.DuckDBPyConnection, parts: Sequence[str], found: Run, told: Numbered, verdict: Verdict,
    spent: dict[int, Spent], windows: _Windows, prepare: Prepare,
) -> None:  # fmt: skip
    """Write why each late rank is."""
    import numpy as np

    members = found.main.group.ranks
    busy, idle = (np.column_stack([getattr(spent[at], name) for at in members]) for name in ("busy", "idle"))
    for column in verdict.late:
        why = judge.delay(busy, idle, verdict, column)
        number = members[column]
        one, host, where = found.ranks[number], None, None
        if why.cause in ("host", "both"):
            steps = np.argsort(-verdict.late_ns[:, column], kind="stable")[:_LOOKED_AT]
            kernels = found.main.group.at[:, column]
            gaps = [
                gap
                for at in steps[verdict.late_ns[steps, column] > 0]
                for gap in spent[number].all.gaps(
                    int(one.end[kernels[windows.first[at]]]), int(one.end[kernels[windows.last[at]]])
                )[:1]
            ]
            part = parts[one.trace]
            host, where = place.of_gaps(connection, part, one, gaps, partial(prepare, among=[part]))
        insert(connection, "facts.rank_delays", [{
            "rank": told.numbers[number], "cause": why.cause, "more_busy_ns": why.more_busy, "more_idle_ns": why.more_idle,
            "busy_ratio": why.busy_ratio, "host": host, "place": where,
        }])  # fmt: skip


def _register(connection: duckdb.DuckDBPyConnection, table: str, columns: dict[str, Any], select: str = "*") -> None:
    """Add rows to a table, of arrays by column."""
    connection.register("found", columns)
    connection.execute(f"INSERT INTO {table} BY NAME SELECT {select} FROM found")
    connection.unregister("found")
