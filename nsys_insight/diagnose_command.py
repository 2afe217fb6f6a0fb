"""The command ``diagnose``, and what the program says where nothing is asked of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nsys_insight import steps, terminal
from nsys_insight.command import format_of, open_traces, save, show
from nsys_insight.errors import InsightError
from nsys_insight.flags import flag_of, with_flags, without
from nsys_insight.render import HUMAN_FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HELP = """Say on one screen what bounds the run, what it costs, and what to do first.

The headline has the verdict of classify, the wall per step, and where it goes: the shares in which the GPU was busy, or
idle for which cause, add up to 100 %. Then come at most seven findings, those with most to win first, each with its
evidence, what to do, when that would be wrong, and the command that shows more. What is less than 1 % of the wall is no
finding. Times are of the profiled run, and the most that can be won: another cause may take the place of one that is
removed. At last stands what the trace cannot tell, and how to capture it.

Machine formats have a finding per row, those that belong to another one under it; JSON has the headline as its summary.
"""


def diagnose_command() -> Callable[..., None]:
    """Make the command ``diagnose``."""

    def run(trace: Path | None, **given: Any) -> None:
        told = {name: given.pop(name) for name in steps.PARAMS}
        steps.options(told)
        asked = {name: value for name, value in told.items() if value not in (None, steps.PARAMS[name].default)}
        fmt, output, limit = format_of(given), given["output"], given["limit"]
        with open_traces([trace] if trace else [], given) as opened:
            diagnosis = opened.diagnose(**asked)
            if fmt not in HUMAN_FORMATS:
                show(diagnosis.answer(), fmt, output, limit)
                return
            from nsys_insight.diagnosis_text import markdown, text

            if fmt == "markdown":
                written = markdown(diagnosis, limit)
            else:
                written = text(diagnosis, None if output else terminal.width(), limit)
            if output:
                save(output, written)
            else:
                sys.stdout.write(written)
            for note in diagnosis.notes:
                terminal.note(note)

    command = with_flags(run, HELP, *map(flag_of, steps.PARAMS.values()))
    return without(command, "explain", "full_names", "no_color")


def greet() -> bool:
    """Print the headline of the trace of this folder, and how to go on; False where there is none that can be read."""
    from nsys_insight.resolve import resolve

    try:
        path, _ = resolve(None)
    except InsightError:
        return False
    from nsys_insight.diagnosis_text import greeting

    given = dict.fromkeys(("timeout", "memory", "cache", "ncu", *_SCOPE))
    try:
        with open_traces([path], given) as trace:
            sys.stdout.write(greeting(trace.diagnose(), terminal.width()))
    except InsightError as error:
        terminal.note(error.message)
        return False
    return True


_SCOPE = tuple(f"scope_{name}" for name in ("nvtx", "from", "to", "device", "process", "stream"))
