"""The commands about compiled kernels: ``sass`` and ``ptxas``."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from nsys_insight import outputs, progress
from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags
from nsys_insight.cli.run import open_trace, resolve_trace, show
from nsys_insight.errors import TraceError, UsageError
from nsys_insight.render import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_insight.session.answer import Answer

_MAX_SENTENCES = 20  # sentences below a table


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
    arch: Annotated[str | None, typer.Option("--arch", help="Only code of this architecture: sm_90.")] = None,
    row_kind: Annotated[
        str,
        typer.Option(
            "--by", help="What a row stands for: loop (kernels and their loops), class (of instructions), line."
        ),
    ] = "loop",
    fmt: Annotated[str | None, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="Show this many rows; 0 is all.")] = None,
) -> None:
    """Read the machine code of kernels: instructions, loops, loads and stores, spills, and what stands out.

    Loops are found by the jumps of the code. compute_per_load compares multiply-adds (FFMA, HFMA2, DFMA, IDP, tensor
    cores) with loads from global memory in a loop: below 5, memory usually limits the loop, and asynchronous copies
    to shared memory (cp.async) pay off; above 20, they cost more than they hide. Stall codes are the compiler's: HMMA
    S08 is the hardware minimum, IMMA S04 can be S02, and independent FFMAs can be S01.

    With ncu's source page (ncu --import FILE.ncu-rep --csv --page source > FILE.source.csv), it also says what was
    executed, and --by line shows where warps waited, and for what.

    Architectures from sm_70. Instructions that are not in the catalog count as unknown. A binary file is read with your
    cuobjdump or nvdisasm.
    """
    from nsys_insight.kernel_code import sass as code

    flags = Flags(fmt=fmt, output=output, limit=limit)
    fmt = flags.format
    if row_kind not in code.GROUPINGS:
        raise UsageError(f"--by cannot be {row_kind!r}", f"choose one of: {', '.join(code.GROUPINGS)}")
    outputs.check_target(output, [file])
    with progress.show_task(f"reading {file.name}"):
        code_answer = code.answer(file, grouping=row_kind, kernel=kernel, architecture=arch)
    _show_answer(code_answer, fmt, flags)


def ptxas(  # noqa: PLR0913 - flags
    file: Annotated[
        Path,
        typer.Argument(
            metavar="[FILE]",
            help="What nvcc -Xptxas -v, nvcc --resource-usage or cuobjdump -res-usage printed; left out, stdin.",
            show_default=False,
        ),
    ] = Path("-"),
    *,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="A trace of the program: how its kernels were launched.")
    ] = None,
    kernel: Annotated[str | None, typer.Option("--kernel", "-k", help="Only kernels whose name contains this.")] = None,
    block: Annotated[
        int | None, typer.Option("--block", min=1, help="Threads in a block, if there is no trace.")
    ] = None,
    shared: Annotated[
        str | None, typer.Option("--shared", help="Dynamic shared memory of a block, such as 30KiB, in the same way.")
    ] = None,
    arch: Annotated[str | None, typer.Option("--arch", help="The architecture, if the text does not say it.")] = None,
    fmt: Annotated[str | None, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="Show this many rows; 0 is all.")] = None,
) -> None:
    """Read registers, spills, stack and shared memory of kernels, and say what fits on an SM, and what limits it.

    nvcc -Xptxas -v -c kernels.cu 2>&1 | nsys-insight ptxas --trace trace.nsys-rep

    With a trace of the program there is a row for each block size and shared memory that a kernel was launched with;
    kernels are matched by mangled name. Spills cost local memory traffic. Low occupancy is not a problem in itself:
    see nsys-insight occupancy --help.
    """
    from nsys_insight.kernel_code import ptxas as compiler
    from nsys_insight.kernel_code.occupancy import parse_shared_bytes

    flags = Flags(fmt=fmt, output=output, limit=limit)
    fmt = flags.format
    outputs.check_target(output, [file, *([trace] if trace else [])])
    with ExitStack() as stack:
        resources_answer = compiler.answer(
            stack.enter_context(_open_text(file)),
            "the text on stdin" if str(file) == "-" else str(file),
            compiler.Assumptions(block, parse_shared_bytes(shared), arch),
            trace=stack.enter_context(open_trace(resolve_trace(trace))) if trace else None,
            kernel=kernel,
        )
    _show_answer(resources_answer, fmt, flags)


@contextmanager
def _open_text(file: Path) -> Iterator[TextIO]:
    """Open a text file; `-` is stdin, if it is not a terminal."""
    if str(file) == "-":
        if sys.stdin.isatty():
            raise UsageError("ptxas reads a file or a pipe", "nvcc -Xptxas -v -c FILE.cu 2>&1 | nsys-insight ptxas")
        yield sys.stdin
        return
    try:
        stream = file.open(encoding="utf-8-sig", errors="backslashreplace")
    except OSError as error:
        raise TraceError(f"{file} cannot be read: {error.strerror}", "name what nvcc -Xptxas -v printed") from None
    with stream:
        yield stream


def _show_answer(answer: Answer, fmt: str, flags: Flags) -> None:
    """Show an answer. A table leaves out empty columns, and is followed by sentences about what stands out."""
    if fmt != "table" or flags.output or "reading" not in [column.name for column in answer.columns]:
        show(answer, fmt, flags)
        return
    filled_columns = {name for row in answer.dicts() for name, value in row.items() if value is not None} - {"reading"}
    show(
        replace(answer, columns=tuple(column for column in answer.columns if column.name in filled_columns)), fmt, flags
    )
    from nsys_insight.kernel_code.reading import format_readings

    _print_sentences(list(format_readings(answer)))


def _print_sentences(sentences: list[str]) -> None:
    """Print sentences below the table, wrapped at words."""
    from nsys_insight.text.cells import printable, wrap

    width = terminal.get_width()
    for text in sentences[:_MAX_SENTENCES]:
        first_line, *other_lines = wrap(printable(text), width - 2)
        sys.stdout.write(f"- {first_line}\n" + "".join(f"  {line}\n" for line in other_lines))
    if len(sentences) > _MAX_SENTENCES:
        terminal.note(f"{_MAX_SENTENCES} of {len(sentences)} sentences shown; --kernel narrows, --format json has all")


SASS = Command(
    "sass",
    lambda: sass,
    group="kernels",
    place=170,
    help="Read machine code: loops, instructions, loads per multiply-add, spills",
    examples=("sass decode.cubin --kernel softmax", "sass source.csv --by class"),
)


PTXAS = Command(
    "ptxas",
    lambda: ptxas,
    group="kernels",
    place=180,
    help="Read registers, spills and shared memory from the compiler, and what fits on an SM",
    examples=("ptxas build.log", "ptxas build.log --trace trace.nsys-rep"),
)
