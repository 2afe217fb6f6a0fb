"""Commands that write a trace in another form: ``convert`` (notebooks, timelines), ``export`` (SQLite), ``scrub``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsys_insight import outputs, own_files, progress
from nsys_insight.cache_folder import make_work_path
from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, FormatOption, TraceArgument, check_format, make_command, make_flag
from nsys_insight.cli.run import make_export_progress, open_traces, refuse_host, resolve_trace, show
from nsys_insight.errors import UsageError
from nsys_insight.packs.library import built_in_packs

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.scrub.scrub import ScrubResult

_CONVERT_HELP = """Convert a trace: -o trace.duckdb (a DuckDB file with the views in it), -o FOLDER (each view a Parquet
file), -o part.sqlite (with a scope such as --step 5, the rows of that part), or -o trace.pftrace (a timeline
that ui.perfetto.dev and trace_processor open; a scope makes it smaller).

No file is scrubbed: it has the names, the paths and the command line of the trace. --scrub replaces them in what is
written, as the command scrub does, to share it.

All but the timeline are traces like any other: nsys-insight top trace.duckdb. The wall time of a part is from its first
to its last CUDA event: shares of it and idle times at its edges may differ a little, counts and other times do not."""


# The file in this folder that is written without -o, by kind: the name of the trace with this suffix.
_SUFFIXES = {"duckdb": ".duckdb", "parquet": "_parquet", "sqlite": "_part.sqlite", "perfetto": ".pftrace"}


def make_convert_command() -> Callable[..., None]:
    """Make the command ``convert``."""

    def run(trace: Path | None, flags: Flags, *, kind: str | None, force: bool, scrub: bool) -> None:
        from nsys_insight.convert.convert import choose_kind, convert

        output = flags.output
        if output is None and kind not in _SUFFIXES:
            raise UsageError("convert needs a file to write to", "nsys-insight convert trace.nsys-rep -o trace.duckdb")
        if output is None:
            trace = resolve_trace(trace)
            output = Path(f"{trace.stem}{_SUFFIXES[kind or '']}")
        output_kind = choose_kind(output, kind)
        if scrub:
            refuse_host(
                "--scrub reads the file of a trace, and here it is open",
                f"nsys-insight convert TRACE --scrub -o {output}",
            )
            _convert_scrubbed(resolve_trace(trace), output, output_kind, flags, force=force)
        else:
            with open_traces([trace] if trace else [], flags) as opened_trace:
                convert(opened_trace, output, output_kind, force=force)
        terminal.note(f"{output} written{_describe_output(output, output_kind)}")
        if not scrub:
            terminal.note(
                "convert has not scrubbed it: names, paths and the command line are those of the trace; add --scrub "
                "before you share it"
            )

    return make_command(
        run,
        _CONVERT_HELP,
        make_flag(
            "kind",
            str | None,
            "--as",
            help="duckdb, parquet, sqlite or perfetto; by default from -o. Without -o, the trace names the file.",
        ),
        make_flag("force", bool, "--force", help="Overwrite existing files."),
        make_flag("scrub", bool, "--scrub", help="Replace private data in what is written, as the command scrub does."),
        omitted_fields=("csv_safe",),
    )


def _describe_output(output: Path, kind: str) -> str:
    """Describe what was written, where its name does not."""
    if kind == "parquet":
        count = len(list(output.glob("*.parquet")))
        return (
            f": a folder with a file for each of {count} views; one view as one file: nsys-insight sql TRACE"
            ' "FROM kernels" -o kernels.parquet'
        )
    return "; open it at ui.perfetto.dev" if kind == "perfetto" else ""


def _convert_scrubbed(trace: Path, output: Path, kind: str, flags: Flags, *, force: bool) -> None:
    """Write the part in scope without private data. The part is scrubbed as a SQLite file, then converted."""
    from nsys_insight.convert.convert import convert
    from nsys_insight.scrub.scrub import scrub as scrub_trace

    outputs.check_target(output, [trace])
    outputs.refuse_existing(output, force=force)
    # Opened like any other trace, but the files are temporary: neither cached nor remembered.
    flags = replace(flags, cache=False, output=None)

    def write_part(source: Path, target: Path) -> None:
        with open_traces([source], flags) as opened_trace:
            convert(opened_trace, target, "sqlite", force=True)

    def write(target: Path) -> ScrubResult:
        with progress.show_task(f"scrubbing {trace.name}") as task:
            return scrub_trace(
                trace, target, force=force, write_part=write_part,
                note=terminal.note, progress=make_export_progress(task, trace.name),
            )  # fmt: skip

    if kind == "sqlite":
        scrub_result = write(output)
    else:
        with make_work_path(output.resolve()) as work_path:
            part = work_path.with_name("part.sqlite")
            own_files.claim(part)
            scrub_result = write(part)
            with open_traces([part], Flags(cache=False)) as opened_trace:
                convert(opened_trace, output, kind, force=force)
    _show_scrub_result(scrub_result, check_format(flags.fmt or "table"))


def _show_scrub_result(scrub_result: ScrubResult, fmt: str) -> None:
    show(scrub_result.remaining, fmt, Flags(limit=0))
    terminal.note(f"rewritten or omitted: {scrub_result.counts_text or 'nothing'}")
    if scrub_result.differing_reports:
        terminal.note(
            f"these depend on kernel names, which are hashed, and differ: {', '.join(scrub_result.differing_reports)}"
        )
    same_report_count = len(built_in_packs()) - len(scrub_result.differing_reports)
    terminal.note(f"{same_report_count} of {len(built_in_packs())} reports give the same numbers")


def export(
    trace: TraceArgument = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file or folder to write to.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,  # noqa: FBT002
) -> None:
    """Export a report to SQLite with your nsys, into the current folder or to -o."""
    from nsys_insight.ingest.export import export as export_report

    path = resolve_trace(trace)
    with progress.show_task(f"exporting {path.name}") as task:
        export_path = export_report(
            path, output, force=force, note=terminal.note, progress=make_export_progress(task, path.name)
        )
    print(export_path)


def scrub(  # noqa: PLR0913 - flags
    trace: TraceArgument = None,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The SQLite file to write; by default NAME.scrubbed.sqlite.")
    ] = None,
    names: Annotated[bool, typer.Option("--names", help="Hash the names of kernels.")] = False,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            help=(
                "The key that --names hashes with: names in files with the same key match, and whoever "
                "knows the key can guess them."
            ),
        ),
    ] = None,
    shift_times: Annotated[
        bool, typer.Option("--shift-times", help="Shift the trace to begin at 0, without dates.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
    fmt: FormatOption = "table",
) -> None:
    """Write a copy of a trace to share: scrub TRACE -o shared.sqlite.

    It leaves out the environment, host and user names, the output of the program, and data that is not text.
    Stand-ins, the same in all texts of all tables, replace paths outside the program's folder, values of environment
    variables, secrets, addresses, UUIDs, and names of other programs. Then the copy is checked: what still looks
    private is listed, masked, and every report must give the same numbers as before, otherwise nothing is written.

    Check what is listed, and the names of kernels and ranges: they stay unchanged, unless --names is given, which
    hashes kernel names.
    """
    from nsys_insight.scrub.scrub import scrub as scrub_trace

    check_format(fmt)
    if key and not names:
        raise UsageError("--key is the key that --names hashes with", "add --names")
    path = resolve_trace(trace)
    output = output or Path(f"{path.stem}.scrubbed.sqlite")
    with progress.show_task(f"scrubbing {path.name}") as task:
        scrub_result = scrub_trace(
            path, output, names=names, key=key, shift_times=shift_times, force=force,
            note=terminal.note, progress=make_export_progress(task, path.name),
        )  # fmt: skip
    _show_scrub_result(scrub_result, fmt)
    terminal.note(f"{output} written")


CONVERT = Command(
    "convert",
    make_convert_command,
    group="share",
    place=210,
    in_help=True,
    help="Write a DuckDB file, Parquet, or a timeline for Perfetto",
    examples=("convert trace.nsys-rep -o trace.duckdb", "convert trace.nsys-rep --as perfetto -o timeline.pftrace"),
)


SCRUB = Command(
    "scrub",
    lambda: scrub,
    group="share",
    place=230,
    in_help=True,
    help="Write a copy to share, without secrets and paths",
    examples=("scrub trace.nsys-rep -o shared.sqlite", "scrub trace.nsys-rep -o shared.sqlite --names --shift-times"),
)


EXPORT = Command(
    "export",
    lambda: export,
    group="share",
    place=240,
    help="Export a report to SQLite with your nsys",
    examples=("export trace.nsys-rep", "export trace.nsys-rep -o /tmp/trace.sqlite --force"),
)
