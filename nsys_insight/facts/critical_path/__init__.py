"""The critical path: some steps in a row are simulated as recorded, and then with parts of them faster."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from nsys_insight.sql.rows import insert
from nsys_insight.text.kernel_names import fit, readable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from nsys_insight.facts.context import Context
    from nsys_insight.facts.critical_path.model import Element, Event

# So many steps in a row, or fewer if they have more kernels and launch calls than that.
STEPS, EVENTS = 8, 1_500
# A step of more than that would take too long to be simulated again and again.
MOST_EVENTS = 20_000
# What is less than this share of the critical path is not simulated faster, nor more elements than that.
LEAST_SHARE, MOST_ELEMENTS = 0.01, 12
# A kernel that takes over is named in so many cells.
NAME_CELLS = 48
# Threads whose calls overlap for more than this share do not take turns.
MOST_OVERLAP = 0.02
# Simulated as recorded, steps must take what they took, but for this share.
MOST_ERROR = 0.1


def fill(context: Context) -> None:
    """Fill `facts.critical_path` and `facts.critical_path_run`."""
    connection, run = context.connection, context.runner("critical_path")
    steps = run("steps")
    chosen = _window(steps)
    if not chosen:
        if steps:
            _say(connection, "there are no two consecutive steady steps of moderate size without an outlier")
        return
    first, last = chosen[0], chosen[-1]
    count = len(chosen) - 1
    span = {"process": first.process_id, "from": first.host_start_ns, "to": last.host_start_ns}

    from nsys_insight.facts.critical_path import model
    from nsys_insight.facts.critical_path.simulate import simulate

    calls = [model.Call(*row) for row in run("calls", **span)]
    operations = [model.Operation(*row) for row in run("operations", **span)]
    waits = [model.Wait(*row) for row in run("waits", **span)]
    if not operations:
        return
    if model.overlap(calls) > MOST_OVERLAP:
        _say(
            connection,
            "several threads make CUDA calls at the same time: waits between threads are not recorded",
        )
        return
    events = model.events(calls, operations, waits, first.host_start_ns, last.host_start_ns)
    base = simulate(events)
    measured = (last.start_ns - first.start_ns) / count
    simulated = base.period_ns / count
    if abs(simulated - measured) > MOST_ERROR * measured:
        _say(
            connection,
            "replayed by what each call and operation waited for, the step does not take as long as recorded",
            steps=count, first_step=first.step, measured_ns=measured, played_ns=simulated,
        )  # fmt: skip
        return
    _say(connection, None, steps=count, first_step=first.step, measured_ns=measured, played_ns=simulated)
    totals = _totals(events)
    order = sorted(base.path_ns, key=lambda element: -base.path_ns[element])
    rows = []
    for at, element in enumerate(order):
        row: dict[str, Any] = {
            "kind": element[0], "name": element[1] or None, "nvtx_path": element[2],
            "path_ns": base.path_ns[element] / count,
            "total_ns": totals[element] / count if element in totals else None,
            "saved_ns": None, "half_saved_ns": None, "takes_over": None,
        }  # fmt: skip
        is_worth = base.path_ns[element] >= LEAST_SHARE * base.period_ns and at < MOST_ELEMENTS
        # How long communication takes is also up to the other ranks.
        if is_worth and element[0] != "communication":
            without = simulate(events, element)
            # What is not on the path saves nothing.
            most = base.path_ns[element]
            saved = min(base.period_ns - without.period_ns, most)
            # The longest way is convex in how long one element takes: where all of it is saved, half of it saves half.
            is_all = saved >= most * (1 - 1e-9)
            half_saved = most / 2 if is_all else min(base.period_ns - simulate(events, element, 0.5).period_ns, most)
            row["saved_ns"], row["half_saved_ns"] = max(0.0, saved) / count, max(0.0, half_saved) / count
            row["takes_over"] = _takes_over(base.path_ns, without.path_ns, 0.01 * base.period_ns)
        rows.append(row)
    insert(connection, "facts.critical_path", rows)


def _window(steps: Sequence[Any]) -> Sequence[Any]:
    """Choose steps in a row, and the one after them, that take together what is usual; nothing if there are none."""
    size = max((step.events for step in steps), default=0)
    if size > MOST_EVENTS:
        return []
    count = max(1, min(STEPS, EVENTS // max(1, size)))
    usual = median([step.start_ns - before.start_ns for before, step in pairwise(steps)] or [0])
    while count:
        windows = [
            steps[at : at + count + 1]
            for at in range(len(steps) - count)
            if steps[at + count].step - steps[at].step == count
            and not any(step.is_outlier for step in steps[at : at + count])
        ]
        if windows:
            return min(windows, key=lambda window: abs(window[-1].start_ns - window[0].start_ns - count * usual))
        count //= 2
    return []


def _totals(events: Sequence[Event]) -> Mapping[Element, float]:
    """The time of each element, on the critical path or not."""
    totals: dict[Element, float] = {}
    for event in events:
        each = [(event.work, event.work_ns), (event.call, event.call_ns)]
        for element, ns in [*each, *((run.element, run.runs_ns) for run in event.runs)]:
            totals[element] = totals.get(element, 0.0) + ns
    return totals


def _takes_over(before: Mapping[Element, float], after: Mapping[Element, float], least_ns: float) -> str | None:
    """What gains most of the critical path; None where nothing gains as much as `least_ns`."""
    gains = {element: ns - before.get(element, 0.0) for element, ns in after.items()}
    most = max(gains, key=lambda element: (gains[element], element[0], element[1]), default=None)
    if most is None or gains[most] < least_ns:
        return None
    return f"{most[0]}: {fit(readable(most[1]), NAME_CELLS)}" if most[1] else most[0]


def _say(connection: duckdb.DuckDBPyConnection, reason: str | None, **numbers: float) -> None:
    row = {"reason": reason, **numbers}
    connection.execute(
        f"INSERT INTO facts.critical_path_run ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()]
    )
