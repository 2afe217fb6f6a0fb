"""The commands about what kernels were compiled to: ``sass``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from nsys_insight import outputs, progress
from nsys_insight.cli import terminal
from nsys_insight.cli.flags import Flags, checked_format
from nsys_insight.cli.run import show
from nsys_insight.errors import UsageError
from nsys_insight.render import FORMATS, format_for

_LISTED = 20  # sentences below a table


def sass(  # noqa: PLR0913 - flags
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A cubin, executable or library; what cuobjdump -sass or nvdisasm printed of it (- is stdin); or ncu's"
            " source page as CSV.",
        ),
    ],
    *,
    kernel: Annotated[str | None, typer.Option("--kernel", "-k", help="Only kernels whose name contains this.")] = None,
    arch: Annotated[
        str | None, typer.Option("--arch", help="Only code of this architecture: sm_90.", show_default=False)
    ] = None,
    by: Annotated[
        str,
        typer.Option("--by", help="What a row is: loop (kernels and their loops), class (of instructions), line."),
    ] = "loop",
    few: Annotated[
        float, typer.Option("--few", help="Multiply-adds per global load below which asynchronous copies pay.")
    ] = 5.0,
    many: Annotated[float, typer.Option("--many", help="Multiply-adds per load above which they cost.")] = 20.0,
    fmt: Annotated[str | None, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=0, help="Show this many rows; 0 is all.", show_default=False)
    ] = None,
) -> None:
    """Read the machine code of kernels: instructions, loops, loads and stores, spills, and what stands out.

    Loops are found by the jumps of the code. compute_per_load compares multiply-adds (FFMA, HFMA2, DFMA, IDP, tensor
    cores) with loads from global memory in a loop: below 5, memory usually limits it, and asynchronous copies to shared
    memory (cp.async) pay; above 20 they cost more than they hide. Stall codes are the compiler's: HMMA S08 is the least
    that the hardware allows, IMMA S04 can be S02, and FFMAs that do not need each other can be S01.

    With ncu's source page (ncu --import FILE.ncu-rep --csv --page source > FILE.source.csv), it also says what was
    executed, and --by line shows where warps waited, and for what.

    Architectures from sm_70. An instruction that is not known is counted as unknown. A binary file is read with your
    cuobjdump or nvdisasm.
    """
    from nsys_insight.kernel_code import sass as code
    from nsys_insight.kernel_code.reading import Limits

    fmt = checked_format(fmt or (format_for(output) if output else "table"))
    if by not in code.BY:
        raise UsageError(f"--by cannot be {by!r}", f"choose one of: {', '.join(code.BY)}")
    outputs.check(output, [file])
    with progress.at(f"reading {file.name}"):
        made = code.answer(file, by=by, kernel=kernel, architecture=arch, limits=Limits(few, many))
    flags = Flags(output=output, limit=limit)
    if by != "loop" or fmt != "table" or output:
        show(made, fmt, flags)
        return
    known = {name for row in made.dicts() for name, value in row.items() if value is not None} - {"reading"}
    show(replace(made, columns=tuple(column for column in made.columns if column.name in known)), fmt, flags)
    _print(list(code.said(made)))


def _print(sentences: list[str]) -> None:
    """Print what stands out below the table, in lines of whole words."""
    from nsys_insight.text.cells import printable, wrap

    width = terminal.width()
    for text in sentences[:_LISTED]:
        first, *others = wrap(printable(text), width - 2)
        sys.stdout.write(f"- {first}\n" + "".join(f"  {line}\n" for line in others))
    if len(sentences) > _LISTED:
        terminal.note(f"{_LISTED} of {len(sentences)} sentences shown; --kernel narrows, --format json has all")
