"""The command ``scrub``: a trace that can be given away."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nsys_insight import progress
from nsys_insight.cli import terminal
from nsys_insight.cli.flags import Flags, TraceArgument, checked_format
from nsys_insight.cli.run import exporting, meant_trace, show
from nsys_insight.errors import UsageError
from nsys_insight.packs.built_in import built_in
from nsys_insight.render import FORMATS


def scrub(  # noqa: PLR0913 - flags
    trace: TraceArgument = None,
    *,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The SQLite file to write.")] = None,
    names: Annotated[bool, typer.Option("--names", help="Hash the names of kernels.")] = False,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            help=(
                "The key that --names hashes with: names in files with the same key match, and whoever "
                "knows the key can guess them."
            ),
            show_default=False,
        ),
    ] = None,
    shift_times: Annotated[
        bool, typer.Option("--shift-times", help="Shift the trace to begin at 0, without dates.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
    fmt: Annotated[str, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}.")] = "table",
) -> None:
    """Write a copy of a trace to share: scrub TRACE -o shared.sqlite.

    It leaves out the environment, host and user names, the output of the program, and data that is not text.
    Stand-ins, the same in all texts of all tables, replace paths outside the program's folder, values of environment
    variables, secrets, addresses, UUIDs, and names of other programs. Then the copy is checked: what still looks like
    a secret is listed, and every report must give the same numbers as before, otherwise nothing is written.

    Check what is listed, and the names of kernels and ranges: they are kept, unless --names is given, which hashes
    kernel names.
    """
    from nsys_insight.scrub.scrub import scrub as scrubbed

    checked_format(fmt)
    if output is None:
        raise UsageError("scrub needs a file to write to", "nsys-insight scrub trace.sqlite -o shared.sqlite")
    if key and not names:
        raise UsageError("--key is the key that --names hashes with", "add --names")
    path = meant_trace(trace)
    with progress.at(f"scrubbing {path.name}") as task:
        made = scrubbed(
            path, output, names=names, key=key, shift_times=shift_times, force=force,
            note=terminal.note, progress=exporting(task, path.name),
        )  # fmt: skip
    show(made.left, fmt, Flags(limit=0))
    terminal.note(f"rewritten or omitted: {made.rewritten or 'nothing'}")
    same = len(built_in()) - len(made.differing)
    if made.differing:
        terminal.note(f"these depend on kernel names, which are hashed, and differ: {', '.join(made.differing)}")
    terminal.note(f"{same} of {len(built_in())} reports give the same numbers; {output} written")
