"""The command ``report``: writes the page, everything in one file to share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight import outputs
from nsys_insight.cli import terminal
from nsys_insight.cli.flags import Flags, flag, flag_of, step_flags, taken_steps, with_flags
from nsys_insight.cli.run import open_traces
from nsys_insight.errors import UsageError
from nsys_insight.packs import library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TEXT = (
    "Write a report to hand over: -o report.html is a page that needs nothing else, -o report.md is Markdown.\n\n"
    "The diagnosis first, then what each report answers, with pictures: a typical step moment by moment, where the"
    " wall goes, the kernels that take most, the pace of the steps, the chains of kernels that could be one."
    " --template agent is short Markdown for a coding agent. Without -o, Markdown goes to stdout."
)


def page_command() -> Callable[..., None]:
    """Make the command ``report``."""
    params = library.pack_of("roofline").params
    roofline = {name: params[name] for name in ("gemm", "attention", "causal", "elements")}

    def run(trace: Path | None, flags: Flags, *, template: str, **given: Any) -> None:
        from nsys_insight.page import file

        steps = taken_steps(given)
        sizes = {name: value for name in roofline if (value := given.pop(name)) not in (None, False)}
        kind = file.page_kind(flags.output, template)
        if flags.fmt not in (None, "markdown") or (flags.fmt and kind == "html"):
            raise UsageError("a report is a page or Markdown", "name it: -o report.html or -o report.md")
        if flags.explain:
            raise UsageError("a report is made of many queries", "nsys-insight top --explain prints one of them")
        with open_traces([trace] if trace else [], flags) as opened:
            opened.refuse_several("a page is of one trace", "name one of them, such as the rank that diagnose looks at")
            text = file.page_text(opened, kind, steps, limit=flags.limit, sizes=sizes)
        if flags.output is None:
            print(text, end="")
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
    return with_flags(run, _TEXT, own, *step_flags(), *map(flag_of, roofline.values()), without=("csv_safe",))
