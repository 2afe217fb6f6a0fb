"""The commands of a few lines each: ``schema``, ``demo``, ``export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nsys_insight import progress
from nsys_insight.cli import completion, terminal
from nsys_insight.cli.flags import Flags, FormatOption, TraceArgument, checked_format
from nsys_insight.cli.run import exporting, meant_trace, show

# What the demo asks: the report, its flags as typed, the scope, the parameters.
DEMO: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
    ("info", "", {}, {}),
    ("top", " --limit 8", {}, {}),
    ("launches", " --limit 8", {}, {}),
    ("syncs", " --nvtx decode_step", {"nvtx": "decode_step"}, {}),
    ("gap-sizes", "", {}, {}),
    ("per-token", "", {}, {}),
)


def schema(
    view: Annotated[
        str | None,
        typer.Argument(
            help="A view, or with --json a report; by default, all of them.",
            show_default=False,
            autocompletion=completion.reports_and_views,
        ),
    ] = None,
    fmt: FormatOption = "table",
    every: Annotated[bool, typer.Option("--all", help="Also views that only other views use.")] = False,  # noqa: FBT002 - a flag
    as_json: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--json", help="Print the JSON Schema of what a command writes under --format json.")
    ] = False,
) -> None:
    """Describe the views that sql can query, and their columns; or with --json the JSON that commands write.

    --json takes a report, diagnose, diff, check, sql, packs, bench, experiment, sass, ptxas, ncu-plan, ncu-report,
    ncu-roofline, ncu-diff, answer (what all share) or error; by default, all of them.
    """
    if as_json:
        import json

        from nsys_insight.cli.json_schema import schema_of

        print(json.dumps(schema_of(view), indent=2))
        return
    from nsys_insight.session.schema import described

    show(described(view, internal=every), checked_format(fmt), Flags(limit=0))


def demo() -> None:
    """Run the main reports on a sample trace: a small decoder that PyTorch runs eagerly on an H200."""
    from nsys_insight.paths import demo_trace
    from nsys_insight.text.severity import colored
    from nsys_insight.trace import Trace

    path = demo_trace()
    terminal.note(f"the trace is {path}; copy it to run these commands yourself")
    with Trace(path) as trace:
        said = trace.diagnose().text(terminal.width())
        said = colored(said) if terminal.color(wanted=True) else said
        print(f"$ nsys-insight diagnose {path.name}\n\n{said}\n", flush=True)
        for report, flags, scope, params in DEMO:
            print(f"$ nsys-insight {report} {path.name}{flags}\n", flush=True)
            with trace.scope(**scope) as scoped:
                show(scoped.answer(report, **params), "table", Flags(limit=8 if "--limit" in flags else None))
            print(flush=True)


def export(
    trace: TraceArgument = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file or folder to write to.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,  # noqa: FBT002
) -> None:
    """Export a report to SQLite with your nsys, into the current folder or to -o."""
    from nsys_insight.ingest.export import export as export_report

    path = meant_trace(trace)
    with progress.at(f"exporting {path.name}") as task:
        written = export_report(path, output, force=force, note=terminal.note, progress=exporting(task, path.name))
    print(written)
