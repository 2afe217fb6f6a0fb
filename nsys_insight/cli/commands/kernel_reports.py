"""Reports with flags that no header declares: `roofline` can be drawn, `occupancy` and `peaks` need no trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, flag, flag_of, traces_argument, with_flags
from nsys_insight.cli.run import answer_pack, draw, help_of, open_traces, picture_of, show
from nsys_insight.errors import UsageError
from nsys_insight.packs import library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def roofline_command() -> Callable[..., None]:
    """Make the command ``roofline``: its pack as a table, or drawn."""
    pack = library.pack_of("roofline")

    def run(traces: list[Path] | None, flags: Flags, *, plot: bool, **params: Any) -> None:
        if flags.explain or not (plot or picture_of(flags.output)):
            answer_pack(pack, traces, flags, params)
            return
        with open_traces(traces or [], flags) as opened:
            draw(opened.answer(pack, **params), flags.output, flags.limit)

    own = flag("plot", bool, "--plot", help="Draw with characters; -o x.svg and -o x.png are pictures.")
    return with_flags(run, help_of(pack), own, *map(flag_of, pack.params.values()), argument=traces_argument())


def occupancy_command() -> Callable[..., None]:
    """Make the command ``occupancy``: its pack, or without a trace what fits by the numbers of a kernel."""
    pack = library.pack_of("occupancy")

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

        wanted = occupancy.Wanted(block, registers, occupancy.shared_of(shared))
        show(occupancy.answer(wanted, arch), flags.format, flags, default_limit=0)

    what = {"rich_help_panel": "Without a trace"}
    own = [
        flag("block", int | None, "--block", min=1, help="Threads in a block; by default, the best size.", **what),
        flag("registers", int | None, "--registers", min=1, help="Registers per thread.", **what),
        flag("shared", str | None, "--shared", help="Shared memory of a block, such as 30KiB.", **what),
        flag("arch", str | None, "--arch", help="One architecture (9.0, sm_90); by default, all.", **what),
    ]
    return with_flags(run, help_of(pack), *own, *map(flag_of, pack.params.values()), argument=traces_argument())


def peaks_command() -> Callable[..., None]:
    """Make the command ``peaks``: its pack, or without a trace what the catalog says of architectures."""
    pack = library.pack_of("peaks")

    def run(traces: list[Path] | None, flags: Flags, *, arch: str | None, **params: Any) -> None:
        if arch is None:
            answer_pack(pack, traces, flags, params)
            return
        if traces:
            raise UsageError("--arch works without a trace", "omit the trace, or --arch")
        from nsys_insight.kernel_code.occupancy import peaks

        show(peaks(arch), flags.format, flags, default_limit=0)

    own = flag("arch", str | None, "--arch", help="Without a trace: an architecture of the catalog (9.0), or all.")
    return with_flags(run, help_of(pack), own, *map(flag_of, pack.params.values()), argument=traces_argument())


# Listed as the reports that they are.
ROOFLINE = Command("roofline", roofline_command)
OCCUPANCY = Command("occupancy", occupancy_command)
PEAKS = Command("peaks", peaks_command)
