"""What the commands that compare runs share: open the sides and measure them, and write tables."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from nsys_insight import outputs, progress
from nsys_insight.cli import terminal
from nsys_insight.cli.run import open_traces, show, write_answer
from nsys_insight.errors import UsageError
from nsys_insight.render import HUMAN_FORMATS
from nsys_insight.text.units import values

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_insight.cli.flags import Flags
    from nsys_insight.compare.measure import Source
    from nsys_insight.compare.runs import Run
    from nsys_insight.session.answer import Answer


def measure_files(
    sides: Sequence[Sequence[Path | None]], flags: Flags, step_by_side: Sequence[int] = ()
) -> list[list[Run]]:
    """Open all files and measure them (`compare.measure`). With `step_by_side`, each side is a single step."""
    from nsys_insight.compare.measure import measure_runs

    flags_by_side = [replace(flags, scope_step=step) for step in step_by_side] or [flags] * len(sides)
    with ExitStack() as stack, progress.show_task("measuring the runs"):
        sources = [
            [_open_source(path, side_flags, stack) for path in side]
            for side, side_flags in zip(sides, flags_by_side, strict=True)
        ]
        return measure_runs(sources, flags.steps, process=flags.scope_process, note=terminal.note)


def describe_changed_range(sides: Sequence[Sequence[Path]], flags: Flags, steps: Sequence[int]) -> list[str]:
    """Say in which NVTX range inside of two steps the host's own time differs most; nothing without such ranges."""
    if not steps or any(len(side) > 1 for side in sides):
        return []
    from nsys_insight.compare.runs import Run

    times_by_side: list[dict[str, int]] = []
    for (path,), step in zip(sides, steps, strict=True):
        with ExitStack() as stack:
            source = _open_source(path, replace(flags, scope_step=step), stack)
            rows = [] if isinstance(source, Run) else source.answer("nvtx", by="path", fold=False).dicts()
        # The outermost range is the step, whose name may have a number.
        times_by_side.append({row["name"].partition("/")[2]: row["own_host_ns"] for row in rows if "/" in row["name"]})
    before, after = times_by_side
    if not before.keys() & after.keys():
        return []
    name = max(before.keys() & after.keys(), key=lambda name: (abs(after[name] - before[name]), name))
    texts = values("own_host_ns", (before[name], after[name]))
    text = f"of the NVTX ranges in these steps, the host's own time differs most in {name}: {' → '.join(texts)}"
    return [f"{text} (see nvtx --by path --step N)"]


def _open_source(path: Path | None, flags: Flags, stack: ExitStack) -> Source:
    """Open a trace, or read a saved run or what a benchmark wrote. A process is selected later."""
    from nsys_insight.compare.baselines import find_file
    from nsys_insight.compare.measure import read_run

    if path:
        path = find_file(path, terminal.note)
        outputs.check_target(flags.output, [path])
        if run := read_run(path):
            return run
    return stack.enter_context(open_traces([path] if path else [], replace(flags, scope_process=None)))


def write_tables(machine_answer: Answer, tables: Sequence[Answer], fmt: str, flags: Flags) -> None:
    """Write one table in a machine format, or several in a format for people.

    Markdown includes the notes, because it is read elsewhere.
    """
    from nsys_insight.render.markdown import escape_prose

    output = flags.output
    if scope := flags.scope.filters:
        machine_answer, *tables = (
            replace(table, trace={**table.trace, "scope": scope}) for table in (machine_answer, *tables)
        )
    if fmt not in HUMAN_FORMATS:
        show(machine_answer, fmt, flags)
        return
    with outputs.open_text(output) as stream:
        for index, table in enumerate(tables):
            if index:
                stream.write("\n")
            limit = flags.limit if flags.limit is not None else len(table.rows()) if not index else 12
            write_answer(table, stream, fmt, limit or None, flags)
        if fmt == "markdown" and machine_answer.notes:
            stream.write("".join(f"\n- {escape_prose(text)}" for text in machine_answer.notes) + "\n")
    sys.stdout.flush()
    for text in machine_answer.notes if fmt != "markdown" else ():
        terminal.note(text)


def make_page(traces: Sequence[Path], flags: Flags) -> str:
    """Make the page that compares two traces, before and after.

    Raises:
        UsageError: There are not two traces.
    """
    from nsys_insight.page import compare, html

    if len(traces) != 2:
        raise UsageError(
            "a comparison is a page of two traces, before and after",
            "nsys-insight diff before.nsys-rep after.nsys-rep -o changed.html",
        )
    limit = html.MAX_ROWS if flags.limit is None else flags.limit or None
    with (
        open_traces(traces[:1], flags) as before,
        open_traces(traces[1:], flags) as after,
        progress.show_task("comparing"),
    ):
        return compare.render_comparison(before, after, flags.steps, limit)
