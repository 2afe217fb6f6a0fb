"""The command ``report``: write all reports into one file to share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_insight import outputs, progress
from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import (
    Flags,
    make_command,
    make_flag,
    make_param_flag,
    make_step_flags,
    make_traces_argument,
)
from nsys_insight.cli.run import open_traces
from nsys_insight.errors import UsageError
from nsys_insight.packs import library

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.session.session import Session

_REPORT_HELP = (
    "Write a report to share: -o report.html is a self-contained page, -o report.md is Markdown.\n\n"
    "The diagnosis first, then the answer of each report, with pictures: the timeline of a typical step, "
    "where the wall time goes, the kernels that take the most time, the pace of the steps, the chains of kernels that "
    "could be fused. For several traces, the ranks of a run: which rank waits for which, step by step, and everything "
    "else for the late rank. Without -o, a terminal gets a page in this folder, with the trace's name, and a pipe gets "
    "Markdown."
)


def make_page_command() -> Callable[..., None]:
    """Make the command ``report``."""
    params = library.get_pack("roofline").params
    roofline_params = {name: params[name] for name in ("gemm", "attention", "causal", "elements")}

    def run(traces: list[Path] | None, flags: Flags, *, is_opened: bool, **values: Any) -> None:
        from nsys_insight.page import write_page

        sizes = {name: value for name in roofline_params if (value := values.pop(name)) not in (None, False)}
        if flags.explain:
            raise UsageError("a report consists of many queries", "nsys-insight top --explain prints one of them")
        # A terminal would scroll through hundreds of lines.
        is_named_here = flags.output is None and not (flags.fmt or is_opened)
        is_named_here = is_named_here and sys.stdout.isatty()
        kind = _choose_kind(flags, is_page=is_named_here or is_opened)
        output = flags.output
        with open_traces(traces or [], flags) as trace:
            if is_named_here:
                output = Path("report.html" if len(trace.paths) > 1 else f"{trace.path.stem}.html")
                outputs.refuse_foreign(output)  # before minutes of work
            text = write_page(trace, kind, flags.steps, limit=flags.limit, sizes=sizes)
            timeline = _make_timeline(trace) if is_opened and len(trace.paths) == 1 else None
        if output:
            outputs.write_output(output, text)
            terminal.note(f"{output} written" + ("; open it in a browser" if is_named_here else ""))
        if is_opened:
            from nsys_insight.cli import local_server

            local_server.serve(text, timeline, terminal.note)
        elif not output:
            print(text, end="")

    open_help = "Show the page in the browser, from this machine, and its timeline for Perfetto's UI, until Ctrl-C."
    return make_command(
        run,
        _REPORT_HELP,
        make_flag("is_opened", bool, "--open", help=open_help),
        *make_step_flags(),
        *map(make_param_flag, roofline_params.values()),
        argument=make_traces_argument(),
        omitted_fields=("csv_safe",),
    )


def _choose_kind(flags: Flags, *, is_page: bool) -> str:
    """Return the kind of page. `is_page`: without a file, it is HTML."""
    from nsys_insight.page import choose_kind

    kind = choose_kind(flags.output or (Path("report.html") if is_page else None))
    if is_page and kind != "html":
        raise UsageError("--open shows the page, which is HTML", "name it -o report.html, or omit -o")
    if flags.fmt not in (None, "markdown") or (flags.fmt and kind == "html"):
        raise UsageError("unsupported report format (use .html or .md)", "name it: -o report.html or -o report.md")
    return kind


def _make_timeline(trace: Session) -> bytes:
    """Make the timeline that Perfetto's UI reads."""
    from io import BytesIO

    from nsys_insight.convert.perfetto import write_timeline

    stream = BytesIO()
    with progress.show_task("writing the timeline"):
        write_timeline(trace, stream)
    return stream.getvalue()


REPORT = Command(
    "report",
    make_page_command,
    group="first",
    place=20,
    in_help=True,
    help="The diagnosis and all reports in one HTML or Markdown file",
    examples=("report trace.nsys-rep -o report.html", "report trace.nsys-rep --open"),
)
