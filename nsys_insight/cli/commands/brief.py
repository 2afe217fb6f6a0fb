"""The command ``brief``: what an expert needs to see of a run, in one page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, make_command, make_flag, make_step_flags, make_traces_argument
from nsys_insight.cli.run import open_traces, show, write_text
from nsys_insight.render import HUMAN_FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HELP = """Show a run in one page of 2,000 characters: the program, one step, and what takes its time.

The page has what runs and on which GPUs, what repeats (with the loops around it), GPU busy time and idle time by
cause, the operations of one step (kernels, copies, memsets and graphs in one list: count, mean, share of their time,
the time in which the GPU was idle before them, grid and block, unusual shared memory and registers, bytes, memories
and bandwidth), the API calls of one step with what they wait for, NVTX ranges by level, collectives, and the findings
of diagnose, one line each. If no step repeats, the operations and calls are those of the whole trace.

Rows of one name are merged. If the page is full, the lines with the least time are left out: step-operations,
step-calls, nvtx, collectives and diagnose show all. Numbers are those of these reports. Several traces, or a trace of
several ranks: what differs between them, and everything else for the rank that delays the others.

In a terminal, operations and calls are tables, without this limit; --budget gives the text. JSON has the operations as
rows, and everything else as its summary. nsys-insight TRACE, without a command, is the same.
"""


def make_brief_command() -> Callable[..., None]:
    """Make the command ``brief``."""

    def run(traces: list[Path] | None, flags: Flags, *, budget: int | None) -> None:
        fmt = flags.format
        with open_traces(traces or [], flags, can_expand_folders=True) as trace:
            from nsys_insight.diagnose.brief import read_brief
            from nsys_insight.diagnose.brief_text import write_brief, write_page

            brief = read_brief(trace, flags.steps)
            if fmt not in HUMAN_FORMATS:
                show(brief.answer(), fmt, flags)
                return
            # In a terminal a person reads it, elsewhere a program or an agent.
            is_for_people = sys.stdout.isatty() and not flags.output and budget is None and fmt == "table"
            text = write_page(brief, terminal.get_width()) if is_for_people else write_brief(brief, budget)
            write_text(text, flags.output, brief.diagnosis.notes)

    return make_command(
        run,
        HELP,
        make_flag(
            "budget",
            int | None,
            min=300,
            metavar="N",
            help="At most this many characters (default: 2000, or 2600 for several ranks or GPUs).",
        ),
        *make_step_flags(),
        argument=make_traces_argument(),
        omitted_fields=("explain", "full_names"),
    )


BRIEF = Command(
    "brief",
    make_brief_command,
    group="first",
    place=15,
    in_help=True,
    help="One page: the program, one step, what takes its time, and the findings",
    examples=("brief trace.nsys-rep", "brief 'run/rank*.nsys-rep' --budget 4000"),
)
