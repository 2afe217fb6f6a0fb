"""The command ``report``: everything in one file to hand over."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight import packs, steps, terminal
from nsys_insight.command import open_traces
from nsys_insight.errors import UsageError
from nsys_insight.flags import flag_of, with_flags

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TEXT = (
    "Write a report to hand over: -o report.html is a page that needs nothing else, -o report.md is Markdown.\n\n"
    "The diagnosis first, then what each report answers, with pictures: a typical step moment by moment, where the"
    " wall goes, the kernels that take most, the pace of the steps, the chains of kernels that could be one."
    " --template agent is short Markdown for a coding agent. Without -o, Markdown goes to stdout."
)


def report_command() -> Callable[..., None]:
    """Make the command ``report``."""
    params = packs.find("roofline").params
    roofline = {name: params[name] for name in ("gemm", "attention", "causal", "elements")}

    def run(trace: Path | None, *, template: str, **given: Any) -> None:
        from nsys_insight.report import file

        asked = {
            name: value for name in steps.PARAMS if (value := given.pop(name)) not in (None, steps.PARAMS[name].default)
        }
        sizes = {name: value for name in roofline if (value := given.pop(name)) not in (None, False)}
        output: Path | None = given["output"]
        kind = file.kind_of(output, template)
        if given["fmt"] not in (None, "markdown") or (given["fmt"] and kind == "html"):
            raise UsageError("a report is a page or Markdown", "name it: -o report.html or -o report.md")
        if given["explain"]:
            raise UsageError("a report is made of many queries", "nsys-insight top --explain prints one of them")
        with open_traces([trace] if trace else [], given) as opened:
            if output:
                file.check(opened, output)
            text = file.text_of(opened, kind, limit=given["limit"], sizes=sizes, **asked)
        if output is None:
            print(text, end="")
        else:
            file.save(output, text)
            terminal.note(f"{output} written")

    option = typer.Option("--template", help="full, or agent: short Markdown for a coding agent.", show_default=False)
    own = inspect.Parameter(
        "template", inspect.Parameter.KEYWORD_ONLY, default="full", annotation=Annotated[str, option]
    )
    return with_flags(run, _TEXT, own, *map(flag_of, [*steps.PARAMS.values(), *roofline.values()]))
