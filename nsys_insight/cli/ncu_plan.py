"""The command `nsys-insight ncu plan`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from nsys_insight.cli import terminal
from nsys_insight.cli.flags import FormatOption, checked_format
from nsys_insight.cli.run import meant_trace, open_trace, show
from nsys_insight.errors import UsageError
from nsys_insight.ingest.identify import REPORT_SUFFIXES, is_parquet_folder
from nsys_insight.render import HUMAN_FORMATS
from nsys_insight.text.secrets import MASK


def plan(  # noqa: PLR0913 - flags
    trace_and_program: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TRACE] [-- PROGRAM...]",
            help="The trace, and the program's command line if the trace does not have it or another one should run.",
            show_default=False,
        ),
    ] = None,
    *,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel", "-k", help="Kernels whose name contains this, instead of the hottest.", show_default=False
        ),
    ] = None,
    bound: Annotated[
        str | None,
        typer.Option(
            "--bound",
            help="Only kernels that classify --kernels calls compute, memory, latency, balanced or unknown.",
            show_default=False,
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, max=100, help="Number of the hottest kernels.")] = 3,
    sections: Annotated[
        str | None,
        typer.Option(
            "--set", help="ncu's section set: basic, detailed, full; by default chosen by the number of launches."
        ),
    ] = None,
    nvtx: Annotated[
        str | None,
        typer.Option(
            "--nvtx",
            help="Only launches in push/pop ranges of this name; by default in the steps that repeat. '' is no range.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--export", help="The report to write, without suffix.")] = None,
    fmt: FormatOption = "table",
    command_only: Annotated[bool, typer.Option("--command-only", help="Print only the command.")] = False,
    run: Annotated[bool, typer.Option("--run", help="Run the command, with the program after --.")] = False,
    trust: Annotated[
        bool,
        typer.Option("--trust-trace", help="Let --run run the program that the trace names; on a terminal only."),
    ] = False,
) -> None:
    """Write the ncu command that profiles the hottest kernels, each at a launch of the steady state."""
    from nsys_insight.cli.trace_argument import remember
    from nsys_insight.ingest.ncu import tool
    from nsys_insight.ncu import plan as plans

    checked_format(fmt)
    given, program = _split(trace_and_program or [])
    path = meant_trace(given)
    opened = open_trace(path)
    remember(path)
    with opened:
        made = plans.make(
            opened, kernels=tuple(kernel or ()), bound=bound, top=top, sections=sections, nvtx=nvtx, report=name
        )
        command = made.command("ncu", program)
        if command_only:
            print(plans.shell(command))
        else:
            if fmt in HUMAN_FORMATS:
                print(f"{plans.shell(command)}\n", flush=True)
            show(replace(made.answer, params={"command": command, "set": made.sections}), fmt)
            for text in made.notes:
                terminal.note(text)
        if run:
            _refuse_strangers(program, made.app, trust=trust)
            tool.run(made.command(str(tool.newest_ncu()), program))


def _refuse_strangers(given: tuple[str, ...], recorded: tuple[str, ...], *, trust: bool) -> None:
    """Refuse to run what only the trace says, unless somebody at a terminal has said that they trust it.

    Raises:
        UsageError: No program is given, and the trace's own is not to be run, or unknown.
    """
    from nsys_insight.ncu.plan import shell

    if given:
        return
    if not recorded:
        raise UsageError(
            "the trace does not say how the program was started", "nsys-insight ncu plan --run TRACE -- PROGRAM"
        )
    if any(MASK in word for word in recorded):
        raise UsageError(
            f"{MASK} stands for a secret in the program's command line, which cannot be run as it is shown",
            f"replace it with the secret: nsys-insight ncu plan --run TRACE -- {shell(recorded)}",
        )
    if not trust or not (sys.stdin.isatty() and sys.stderr.isatty()):
        at = "" if not trust else "; --trust-trace works only on a terminal"
        raise UsageError(
            f"the program to run is named by the trace, and a trace may name any program{at}",
            f"check it, and pass it: nsys-insight ncu plan --run TRACE -- {shell(recorded)}",
        )


def _split(words: list[str]) -> tuple[Path | None, tuple[str, ...]]:
    """Tell the trace from the program's command line: a trace has its suffix, or is a folder that nsys wrote."""
    if words and (Path(words[0]).suffix in (*REPORT_SUFFIXES, ".sqlite") or is_parquet_folder(Path(words[0]))):
        return Path(words[0]), tuple(words[1:])
    return None, tuple(words)
