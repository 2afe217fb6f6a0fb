"""The command ``report``: writes the page, everything in one file to share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nsys_insight import outputs, progress
from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, flag, flag_of, step_flags, traces_argument, with_flags
from nsys_insight.cli.run import open_traces
from nsys_insight.errors import UsageError
from nsys_insight.packs import library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TEXT = (
    "Write a report to share: -o report.html is a self-contained page, -o report.md is Markdown.\n\n"
    "The diagnosis first, then the answer of each report, with pictures: the timeline of a typical step, "
    "where the wall time goes, the kernels that take the most time, the pace of the steps, the chains of kernels that "
    "could be fused. For several traces, the ranks of a run: which rank waits for which, step by step, and everything "
    "else for the late rank. --template agent is short Markdown for a coding agent. Without -o, Markdown goes to "
    "stdout."
)


def page_command() -> Callable[..., None]:
    """Make the command ``report``."""
    params = library.pack_of("roofline").params
    roofline = {name: params[name] for name in ("gemm", "attention", "causal", "elements")}

    def run(traces: list[Path] | None, flags: Flags, *, template: str, compare: bool, **given: Any) -> None:
        from nsys_insight.page import page_kind, page_text

        sizes = {name: value for name in roofline if (value := given.pop(name)) not in (None, False)}
        kind = page_kind(flags.output, template)
        if flags.fmt not in (None, "markdown") or (flags.fmt and kind == "html"):
            raise UsageError("a report is a page or Markdown", "name it: -o report.html or -o report.md")
        if flags.explain:
            raise UsageError("a report consists of many queries", "nsys-insight top --explain prints one of them")
        if compare:
            text = _compared(traces or [], flags, kind)
        else:
            with open_traces(traces or [], flags) as opened:
                text = page_text(opened, kind, flags.steps, limit=flags.limit, sizes=sizes)
        if flags.output is None:
            print(text, end="")
            if sys.stdout.isatty():
                terminal.note("-o report.html writes a page, -o report.md this text")
        else:
            outputs.save(flags.output, text)
            terminal.note(f"{flags.output} written")

    own = flag(
        "template",
        str,
        "--template",
        default="full",
        help="full, or agent: short Markdown for a coding agent.",
        show_default=False,
    )
    both = flag(
        "compare",
        bool,
        "--compare",
        help="A page of two traces, before and after: what changed, and a step of each on one scale.",
    )
    return with_flags(
        run,
        _TEXT,
        own,
        both,
        *step_flags(),
        *map(flag_of, roofline.values()),
        argument=traces_argument(),
        without=("csv_safe",),
    )


def _compared(traces: list[Path], flags: Flags, kind: str) -> str:
    """Make the page of two traces.

    Raises:
        UsageError: There are not two, or no page is asked for.
    """
    from nsys_insight.page import compare, html

    if len(traces) != 2 or kind != "html":
        raise UsageError(
            "--compare makes a page of two traces, before and after",
            "nsys-insight report --compare before.nsys-rep after.nsys-rep -o changed.html; or diff, in the terminal",
        )
    limit = html.ROWS if flags.limit is None else flags.limit or None
    with (
        open_traces(traces[:1], flags) as before,
        open_traces(traces[1:], flags) as after,
        progress.at("comparing"),
    ):
        return compare.page(before, after, flags.steps, limit)


REPORT = Command(
    "report",
    page_command,
    group="first",
    place=20,
    help="The diagnosis and all reports in one HTML or Markdown file",
    examples=("report trace.nsys-rep -o report.html", "report trace.nsys-rep --template agent -o report.md"),
)
