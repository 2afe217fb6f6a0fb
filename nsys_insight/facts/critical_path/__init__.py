"""The critical path: consecutive steps are simulated as recorded, and then with some of their elements faster."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.critical_path import model
from nsys_insight.facts.critical_path.simulate import simulate
from nsys_insight.sql.rows import insert_rows
from nsys_insight.text.kernel_names import fit, make_readable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from nsys_insight.facts.context import Context
    from nsys_insight.facts.critical_path.model import Element, Event

# Simulate at most this number of consecutive steps, and this number of kernels and launch calls.
STEPS, EVENTS = 8, 1_500
# A step with more events than this takes too long to simulate repeatedly.
MAX_EVENTS = 20_000
# Simulate an element as faster only if it has at least this share of the critical path, and at most this number of
# elements.
MIN_SHARE, MAX_ELEMENTS = 0.01, 12
# Width of the name of the kernel that takes over, in cells.
NAME_CELLS = 48
# Threads run at the same time if their calls overlap for more than this share.
MAX_OVERLAP = 0.02
# The simulated and the recorded step time may differ by at most this share.
MAX_ERROR = 0.1


def fill(context: Context) -> None:
    """Fill `facts.critical_path` and `facts.critical_path_run`."""
    connection, run = context.connection, context.runner("critical_path")
    steps = run("steps")
    window = _choose_window(steps)
    if not window:
        if steps:
            _write_run(connection, "there are no two consecutive steady steps of moderate size without an outlier")
        return
    first, last = window[0], window[-1]
    count = len(window) - 1
    span = {"process": first.process_id, "from": first.host_start_ns, "to": last.host_start_ns}

    calls = [model.Call(*row) for row in run("calls", **span)]
    operations = [model.Operation(*row) for row in run("operations", **span)]
    waits = [model.Wait(*row) for row in run("waits", **span)]
    if not operations:
        return
    if model.measure_overlap(calls) > MAX_OVERLAP:
        _write_run(
            connection,
            "several threads make CUDA calls at the same time: waits between threads are not recorded",
        )
        return
    events = model.build_events(calls, operations, waits, first.host_start_ns, last.host_start_ns)
    baseline = simulate(events)
    measured_ns = (last.start_ns - first.start_ns) / count
    simulated_ns = baseline.period_ns / count
    if abs(simulated_ns - measured_ns) > MAX_ERROR * measured_ns:
        _write_run(
            connection,
            "replayed by what each call and operation waited for, the step does not take as long as recorded",
            steps=count, first_step=first.step, measured_ns=measured_ns, played_ns=simulated_ns,
        )  # fmt: skip
        return
    _write_run(connection, None, steps=count, first_step=first.step, measured_ns=measured_ns, played_ns=simulated_ns)
    totals = _sum_by_element(events)
    elements = sorted(baseline.path_ns, key=lambda element: -baseline.path_ns[element])
    rows = []
    for index, element in enumerate(elements):
        path_ns = baseline.path_ns[element]
        row: dict[str, Any] = {
            "kind": element[0], "name": element[1] or None, "nvtx_path": element[2],
            "path_ns": path_ns / count,
            "total_ns": totals[element] / count if element in totals else None,
            "saved_ns": None, "half_saved_ns": None, "takes_over": None,
        }  # fmt: skip
        is_relevant = path_ns >= MIN_SHARE * baseline.period_ns and index < MAX_ELEMENTS
        # The duration of communication also depends on the other ranks.
        if is_relevant and element[0] != "communication":
            removed = simulate(events, element)
            # Time outside the critical path saves nothing.
            saved_ns = min(baseline.period_ns - removed.period_ns, path_ns)
            # The longest path is convex in the time of one element: if removing it saves its entire time on the path,
            # half of the element saves half of that time.
            is_all_saved = saved_ns >= path_ns * (1 - 1e-9)
            half_saved_ns = (
                path_ns / 2
                if is_all_saved
                else min(baseline.period_ns - simulate(events, element, 0.5).period_ns, path_ns)
            )
            row["saved_ns"], row["half_saved_ns"] = max(0.0, saved_ns) / count, max(0.0, half_saved_ns) / count
            row["takes_over"] = _find_successor(baseline.path_ns, removed.path_ns, 0.01 * baseline.period_ns)
        rows.append(row)
    insert_rows(connection, "facts.critical_path", rows)


def _choose_window(steps: Sequence[Any]) -> Sequence[Any]:
    """Return the consecutive steps closest to the usual step time, and the step after them, if there are any."""
    size = max((step.events for step in steps), default=0)
    if size > MAX_EVENTS:
        return []
    count = max(1, min(STEPS, EVENTS // max(1, size)))
    usual_ns = median([step.start_ns - before.start_ns for before, step in pairwise(steps)] or [0])
    while count:
        windows = [
            steps[index : index + count + 1]
            for index in range(len(steps) - count)
            if steps[index + count].step - steps[index].step == count
            and not any(step.is_outlier for step in steps[index : index + count])
        ]
        if windows:
            return min(windows, key=lambda window: abs(window[-1].start_ns - window[0].start_ns - count * usual_ns))
        count //= 2
    return []


def _sum_by_element(events: Sequence[Event]) -> Mapping[Element, float]:
    """Return the time of each element, on the critical path or not, in ns."""
    totals: dict[Element, float] = {}
    for event in events:
        times = [(event.work, event.work_ns), (event.call, event.call_ns)]
        for element, ns in [*times, *((run.element, run.runs_ns) for run in event.runs)]:
            totals[element] = totals.get(element, 0.0) + ns
    return totals


def _find_successor(before: Mapping[Element, float], after: Mapping[Element, float], min_ns: float) -> str | None:
    """Return the element whose time on the critical path grows most; None if it grows by less than `min_ns`."""
    growth = {element: ns - before.get(element, 0.0) for element, ns in after.items()}
    successor = max(growth, key=lambda element: (growth[element], element[0], element[1]), default=None)
    if successor is None or growth[successor] < min_ns:
        return None
    return f"{successor[0]}: {fit(make_readable(successor[1]), NAME_CELLS)}" if successor[1] else successor[0]


def _write_run(connection: duckdb.DuckDBPyConnection, reason: str | None, **numbers: float) -> None:
    row = {"reason": reason, **numbers}
    connection.execute(
        f"INSERT INTO facts.critical_path_run ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()]
    )
