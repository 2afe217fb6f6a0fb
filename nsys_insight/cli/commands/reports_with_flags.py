"""Reports with flags that no header can declare.

`info` also compares the trace with its file, `roofline` can be drawn, `occupancy` and `peaks` need no trace.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, make_command, make_flag, make_param_flag, make_traces_argument
from nsys_insight.cli.run import answer_pack, draw, format_pack_help, get_picture_suffix, open_traces, show
from nsys_insight.errors import InsightError, UsageError
from nsys_insight.packs import library, rank_sums

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable
    from pathlib import Path

    from nsys_insight.packs.pack import Pack


def make_info_command() -> Callable[..., None]:
    """Make the command ``info``: its pack, and whether the views hold what the file holds."""
    pack = library.get_pack("info")

    def run(traces: list[Path] | None, flags: Flags, *, check: bool, **params: Any) -> None:
        if flags.explain:
            answer_pack(pack, traces, flags, params)
            return
        fmt = flags.format
        with open_traces(traces or [], flags) as trace:
            checks = trace.check_files(is_complete=check)
            if check and not checks:
                raise UsageError("--check compares the whole trace with its file", "omit the scope, or --check")
            answer = trace.answer(pack, **params)
            answer = replace(answer, notes=(*answer.notes, *trace.describe_unread_tables()))
            show(replace(answer, summary={"file_checks": [entry.describe() for entry in checks]}), fmt, flags)
        differences = [
            f"{entry.trace}: {text}" for entry in checks for table in entry.tables for text in table.differences
        ]
        if differences:
            raise InsightError(
                f"these answers are not what the file holds: {'; '.join(differences)}",
                "nsys-insight info --check --no-cache reads the file itself; if it differs as well, report it",
            )

    text = (
        "Below the table it says whether the trace is equal to the file: the number of kernels, copies, memsets, graph"
        " launches, API calls, synchronizations and NVTX ranges, and the sums of their times and sizes, as SQLite reads"
        " them. If they differ, the exit code is 1. A scope is not compared."
    )
    check_help = "Compare rows and sums with the file of any size. Small files are always compared."
    return make_command(
        run,
        f"{format_pack_help(pack)}\n\n{text}",
        make_flag("check", bool, "--check", help=check_help),
        make_param_flag(rank_sums.PARAM),
        argument=make_traces_argument(),
    )


def make_roofline_command() -> Callable[..., None]:
    """Make the command ``roofline``: its pack as a table or a drawing."""
    pack = library.get_pack("roofline")

    def run(traces: list[Path] | None, flags: Flags, *, plot: bool, **params: Any) -> None:
        if flags.explain or not (plot or get_picture_suffix(flags.output)):
            answer_pack(pack, traces, flags, params)
            return
        with open_traces(traces or [], flags) as trace:
            draw(trace.answer(pack, **params), flags.output, flags.limit)

    plot_flag = make_flag("plot", bool, "--plot", help="Draw with characters; -o x.svg and -o x.png are pictures.")
    return _make_command(pack, run, plot_flag)


def make_occupancy_command() -> Callable[..., None]:
    """Make the command ``occupancy``: its pack, or the occupancy of a kernel from its numbers, without a trace."""
    pack = library.get_pack("occupancy")

    def run(  # noqa: PLR0913 - flags
        traces: list[Path] | None,
        flags: Flags,
        *,
        block: int | None,
        registers: int | None,
        shared: str | None,
        arch: str | None,
        **params: Any,
    ) -> None:
        if block is None and registers is None and shared is None:
            if arch is not None:
                raise UsageError("--arch needs the numbers of a kernel", "add --block, --registers or --shared")
            answer_pack(pack, traces, flags, params)
            return
        if traces:
            raise UsageError("--block, --registers and --shared work without a trace", "omit the trace, or these flags")
        from nsys_insight.kernel_code import occupancy

        kernel_resources = occupancy.Requirements(block, registers, occupancy.parse_shared_bytes(shared))
        show(occupancy.answer(kernel_resources, arch), flags.format, flags, default_limit=0)

    panel = {"rich_help_panel": "Without a trace"}
    own_flags = [
        make_flag(
            "block", int | None, "--block", min=1, help="Threads in a block; by default, the best size.", **panel
        ),
        make_flag("registers", int | None, "--registers", min=1, help="Registers per thread.", **panel),
        make_flag("shared", str | None, "--shared", help="Shared memory of a block, such as 30KiB.", **panel),
        make_flag("arch", str | None, "--arch", help="One architecture (9.0, sm_90); by default, all.", **panel),
    ]
    return _make_command(pack, run, *own_flags)


def make_peaks_command() -> Callable[..., None]:
    """Make the command ``peaks``: its pack, or the peaks of architectures in the catalog, without a trace."""
    pack = library.get_pack("peaks")

    def run(traces: list[Path] | None, flags: Flags, *, arch: str | None, **params: Any) -> None:
        if arch is None:
            answer_pack(pack, traces, flags, params)
            return
        if traces:
            raise UsageError("--arch works without a trace", "omit the trace, or --arch")
        from nsys_insight.kernel_code.occupancy import list_peaks

        show(list_peaks(arch), flags.format, flags, default_limit=0)

    arch_flag = make_flag(
        "arch", str | None, "--arch", help="Without a trace: an architecture of the catalog (9.0), or all."
    )
    return _make_command(pack, run, arch_flag)


def _make_command(pack: Pack, run: Callable[..., None], *own_flags: inspect.Parameter) -> Callable[..., None]:
    flags = [*own_flags, *map(make_param_flag, pack.params.values())]
    return make_command(run, format_pack_help(pack), *flags, argument=make_traces_argument(), has_rows=True)


# Without a group: the help lists them as reports.
INFO = Command("info", make_info_command)
ROOFLINE = Command("roofline", make_roofline_command)
OCCUPANCY = Command("occupancy", make_occupancy_command)
PEAKS = Command("peaks", make_peaks_command)
