"""The commands ``diagnose`` and ``demo``, and what the program says where nothing is asked of it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_insight import outputs
from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, step_flags, traces_argument, with_flags
from nsys_insight.cli.run import open_traces, show
from nsys_insight.errors import InsightError
from nsys_insight.packs.step_options import AUTO
from nsys_insight.render import HUMAN_FORMATS
from nsys_insight.text.cells import printable
from nsys_insight.text.severity import colored

if TYPE_CHECKING:
    from collections.abc import Callable

_LISTED = 10
# What the demo asks: the report, its flags as typed, the scope, the parameters.
_DEMO: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
    ("info", "", {}, {}),
    ("top", " --limit 8", {}, {}),
    ("launches", " --limit 8", {}, {}),
    ("syncs", " --nvtx decode_step", {"nvtx": "decode_step"}, {}),
    ("gap-sizes", "", {}, {}),
    ("per-token", "", {}, {}),
)

HELP = """Show on one screen what bounds the run, what it costs, and what to do first.

The headline has the verdict of classify, the step time, and where it goes: the shares of GPU busy time and of idle
time by cause add up to 100 %. At most seven findings follow, the largest possible saving first, each with its
evidence, what to do, when that would be wrong, and the command that shows more. Anything below 1 % of the wall time
is not a finding. Times are of the profiled run, and upper bounds of what can be saved: another cause may take the
place of one that is removed. The last lines say what cannot be determined from the trace, and how to capture it.

Several traces, a folder of them, or a trace of several processes may be the ranks of a run. The headline then says
which rank the others wait for, how long and why; everything else is about that rank.

Machine formats have one finding per row, with findings that belong to another one below it; JSON has the headline as
its summary.
"""


def diagnose_command() -> Callable[..., None]:
    """Make the command ``diagnose``."""

    def run(traces: list[Path] | None, flags: Flags) -> None:
        fmt = flags.format
        with open_traces(traces or [], flags, folders=True) as opened:
            from nsys_insight.diagnose.diagnosis import diagnose
            from nsys_insight.diagnose.text import answer, markdown, text

            found = diagnose(opened, flags.steps)
            if fmt not in HUMAN_FORMATS:
                show(answer(found), fmt, flags)
                return
            if fmt == "markdown":
                written = markdown(found, flags.limit)
            else:
                written = text(found, None if flags.output else terminal.width(), flags.limit)
                if terminal.color(wanted=not flags.no_color and not flags.output):
                    written = colored(written)
            if flags.output:
                outputs.save(flags.output, written)
            else:
                sys.stdout.write(written)
            for note in found.notes:
                terminal.note(note)

    unused = ("explain", "full_names")
    return with_flags(run, HELP, *step_flags(), argument=traces_argument(), without=unused)


def greet() -> bool:
    """Print the headline of the trace of this folder, and how to go on; False where there is none that can be read.

    Where several are here and none was used before, they are listed.
    """
    from nsys_insight.cli.trace_argument import candidates, resolve

    try:
        path, _ = resolve(None)
    except InsightError:
        try:
            found = [str(path) for path in candidates(Path())]
        except InsightError:
            return False
        if len(found) > 1:
            more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
            print(printable(f"{len(found)} traces are in this folder: {', '.join(found[:_LISTED])}{more}"))
            print(printable(f"To diagnose one: {shlex.join(['nsys-insight', 'diagnose', found[0]])}"))
            print("All commands: nsys-insight help")
        return len(found) > 1
    from nsys_insight.diagnose.diagnosis import diagnose
    from nsys_insight.diagnose.text import greeting

    try:
        with open_traces([path], Flags()) as trace:
            sys.stdout.write(greeting(diagnose(trace, AUTO), terminal.width()))
    except InsightError as error:
        terminal.note(error.message)
        return False
    return True


def demo() -> None:
    """Run the main reports on a sample trace: a small decoder that PyTorch runs eagerly on an H200."""
    from nsys_insight.paths import demo_trace
    from nsys_insight.text.severity import colored
    from nsys_insight.trace import Trace

    path = demo_trace()
    terminal.note(f"the trace is {path}; copy it to run these commands yourself")
    with Trace(path) as trace:
        said = trace.diagnose().text(terminal.width())
        said = colored(said) if terminal.color(wanted=True) else said
        print(f"$ nsys-insight diagnose {path.name}\n\n{said}\n", flush=True)
        for report, flags, scope, params in _DEMO:
            print(f"$ nsys-insight {report} {path.name}{flags}\n", flush=True)
            with trace.scope(**scope) as scoped:
                show(scoped.answer(report, **params), "table", Flags(limit=8 if "--limit" in flags else None))
            print(flush=True)


DIAGNOSE = Command(
    "diagnose",
    diagnose_command,
    group="first",
    place=10,
    help="What bounds the run, what it costs, and what to do first",
    examples=("diagnose trace.nsys-rep", "diagnose 'run/rank*.nsys-rep' --steady"),
)


DEMO = Command(
    "demo",
    lambda: demo,
    group="first",
    place=90,
    help="Run the main reports on a sample trace",
    examples=("demo",),
)
