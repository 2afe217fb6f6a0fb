"""The report ``info``, which also compares the trace with its file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, make_command, make_flag, make_param_flag, make_traces_argument
from nsys_insight.cli.run import answer_pack, format_pack_help, open_traces, show
from nsys_insight.errors import InsightError, UsageError
from nsys_insight.packs import library, rank_sums

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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


# Without a group: the help lists it as a report.
INFO = Command("info", make_info_command)
