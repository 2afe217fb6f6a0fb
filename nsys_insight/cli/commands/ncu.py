"""The commands `nsys-insight ncu …`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight import outputs
from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.commands.ncu_profile import analyze, code_of, plan
from nsys_insight.cli.flags import Flags, FormatOption, checked_format
from nsys_insight.cli.run import draw, open_trace, picture_of, show
from nsys_insight.errors import TraceError, UsageError
from nsys_insight.ingest.ncu import store
from nsys_insight.render import FORMATS, format_for

if TYPE_CHECKING:
    from nsys_insight.ncu.data import NcuData

app = typer.Typer(
    help="Nsight Compute: which launch to profile, what ncu measured, and what to change.", invoke_without_command=True
)

_FORMATS = ("table", "markdown", "json")
_TYPE = f"What the kernels are written in, if the name does not say it: {', '.join(store.IMPLEMENTATIONS)}."

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="CSV pages (raw, details) or .ncu-rep reports of ncu, or a file that ncu import wrote."
    ),
]
Implementation = Annotated[str | None, typer.Option("--type", help=_TYPE, show_default=False)]
Against = Annotated[
    Path | None,
    typer.Option("--against", help="ncu data of a baseline, such as cuBLAS: its longest kernel."),
]
AgainstKernel = Annotated[
    str | None, typer.Option("--against-kernel", help="The baseline's name, in --against or else in the same files.")
]


@app.callback()
def _root(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command("plan")(plan)
app.command("analyze")(analyze)


@app.command("import")
def import_(
    files: Files,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help=f"The file to write; by default NAME{store.SUFFIX} in this folder, with the name of the first file.",
        ),
    ] = None,
    implementation: Implementation = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that nsys-insight did not write.")] = False,
) -> None:
    """Read ncu data into one file, which reports and sql find next to the trace of the same name."""
    from nsys_insight.ingest.ncu.pages import report_name

    launches = store.read_all(files)
    target = output or Path(report_name(files[0].name) + store.SUFFIX)
    store.write(launches, target, implementation, files, force=force)
    metrics = sum(len(launch.metrics) for launch in launches)
    rules = sum(len(launch.rules) for launch in launches)
    terminal.note(f"{len(launches):,} launches, {metrics:,} metrics, {rules:,} remarks of ncu's rules")
    print(target)


@app.command()
def report(  # noqa: PLR0913 - flags
    files: Files,
    *,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", help="Rank by the time that kernels take in this trace.", show_default=False),
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option("--tokens", min=1, help="Tokens or steps in the trace: savings are also given per token."),
    ] = None,
    against: Against = None,
    against_kernel: AgainstKernel = None,
    code: Annotated[
        Path | None,
        typer.Option("--sass", help="Machine code of the kernels: ncu's source page, a cubin, or a disassembly."),
    ] = None,
    kernel: Annotated[str | None, typer.Option("--kernel", "-k", help="Only kernels whose name contains this.")] = None,
    implementation: Implementation = None,
    detailed: Annotated[int, typer.Option("--limit", "-n", min=0, help="Kernels to describe in full; 0 is all.")] = 5,
    fmt: Annotated[str | None, typer.Option("--format", "-f", help=f"One of {', '.join(_FORMATS)}.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
) -> None:
    """Say what bounds each kernel, why, and what to change first."""
    from nsys_insight.ncu import report as reports
    from nsys_insight.ncu import report_formats as formats
    from nsys_insight.ncu.data import NcuData

    fmt = fmt or (format_for(output) if output else "table")
    if fmt not in _FORMATS:
        raise UsageError(f"a report cannot be written as {fmt!r}", f"choose one of: {', '.join(_FORMATS)}")
    inputs = [*files, *filter(None, (trace, against, code))]
    outputs.check(output, inputs)
    data = store_of(files, implementation)
    with NcuData(data) as measured:
        baseline = _baseline(measured, against, against_kernel)
        if kernel is not None:
            _keep_only(measured, kernel)
        rows, wall_ns = ([], None) if trace is None else _headroom(trace, data, tokens)
        names = [row["report"] for row in measured.rows("SELECT DISTINCT report FROM ncu_launches ORDER BY report")]
        beside = reports.Context(rows, wall_ns, baseline, {} if code is None else code_of(code))
        built = reports.build(measured, ", ".join(names), beside)
        many = detailed or len(built.kernels)
        with ExitStack() as opened:
            stream = sys.stdout
            if output:
                made = opened.enter_context(outputs.whole(output, inputs))
                stream = opened.enter_context(made.open("w", encoding="utf-8", newline=""))
            if fmt == "json":
                formats.write_json(built, stream)
            elif fmt == "markdown":
                formats.write_markdown(built, stream, many)
            else:
                formats.write_text(built, stream, None if output else terminal.width(), many)
        if fmt != "json" and many < len(built.kernels):
            terminal.note(f"{many} of {len(built.kernels)} kernels in full; --limit 0 describes all")


@app.command()
def diff(  # noqa: PLR0913 - flags
    before: Annotated[Path, typer.Argument(help="ncu data before the change: CSV, report or imported file.")],
    after: Annotated[Path, typer.Argument(help="ncu data after the change.")],
    *,
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="The target metric, a column of ncu_kernels; by default the one for the bound."),
    ] = None,
    kernel: Annotated[str | None, typer.Option("--kernel", "-k", help="Only kernels whose name contains this.")] = None,
    log: Annotated[Path | None, typer.Option("--log", help="Append the iteration to this Markdown file.")] = None,
    change: Annotated[str | None, typer.Option("--change", help="What was changed, for the log.")] = None,
    fmt: FormatOption = "table",
) -> None:
    """Compare two measurements: durations, the target metric, new and resolved findings, and the next step."""
    from nsys_insight.ncu import diff as diffs
    from nsys_insight.ncu.data import VIEW, NcuData

    checked_format(fmt)
    outputs.check(log, [before, after])
    if log is not None and not change:
        raise UsageError("the log needs to know what was changed", f'add --change "what you did" to --log {log}')
    with NcuData(store_of([before], None)) as old, NcuData(store_of([after], None)) as new:
        if metric is not None:
            described = old.rows(
                f"SELECT column_name FROM duckdb_columns() WHERE table_name = '{VIEW}' AND data_type = 'DOUBLE'"
            )
            columns = [row["column_name"] for row in described]
            if metric not in columns:
                raise UsageError(f"there is no metric {metric!r}", f"one of: {', '.join(columns)}")
        for measured in (old, new):
            if kernel is not None:
                _keep_only(measured, kernel)
        compared = diffs.compare(old, new, metric)
        show(diffs.answer(compared), fmt, Flags(limit=0))
        for fact in ("gpu", "compute_capability"):
            seen = [{row[fact] for row in one.rows(f"FROM {VIEW} WHERE {fact} IS NOT NULL")} for one in (old, new)]
            if all(seen) and seen[0] != seen[1]:
                terminal.note(
                    f"measured on different GPUs: {', '.join(sorted(seen[0]))} and {', '.join(sorted(seen[1]))}"
                )
                break
        terminal.note(f"decision: {diffs.decision(compared)}")
        if log is not None:
            diffs.append_log(log, change or "", compared)
            terminal.note(f"appended to {log}")


@app.command()
def roofline(  # noqa: PLR0913 - flags
    files: Files,
    *,
    against: Against = None,
    against_kernel: AgainstKernel = None,
    kernel: Annotated[str | None, typer.Option("--kernel", "-k", help="Only kernels whose name contains this.")] = None,
    plot: Annotated[
        bool, typer.Option("--plot", help="Draw with characters; -o x.svg and -o x.png are pictures.")
    ] = False,
    fmt: Annotated[str | None, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="Show this many rows; 0 is all.")] = None,
) -> None:
    """Place kernels under the roofline by what ncu counted: operations by precision, bytes at DRAM, L2 and L1.

    Operations are those that were executed, in the most common precision (ncu --set full, its raw page).
    Peaks are at the clocks under ncu. Several files make one table, such as the profiles of a size sweep.
    """
    from nsys_insight.ncu import roofline as rooflines
    from nsys_insight.ncu.data import NcuData

    outputs.check(output, [*files, *([against] if against else [])])
    picture = picture_of(output)
    fmt = checked_format(fmt or (format_for(output) if output and not picture else "table"))
    with NcuData(store_of(files, None)) as measured:
        baseline = _baseline(measured, against, against_kernel)
        made = rooflines.answer(measured, kernel=kernel, baseline=baseline)
    if not (plot or picture):
        show(made, fmt, Flags(output=output, limit=limit))
        return
    draw(made, output, limit)


def _baseline(measured: NcuData, against: Path | None, kernel: str | None) -> dict[str, Any] | None:
    """Return a baseline from another capture, or by its name from the same; None where none is asked for."""
    from nsys_insight.ncu import roofline as rooflines
    from nsys_insight.ncu.data import NcuData

    if against is not None:
        with NcuData(store_of([against], None)) as other:
            return rooflines.baseline_of(other, kernel)
    return None if kernel is None else rooflines.baseline_of(measured, kernel)


def store_of(files: list[Path], implementation: str | None) -> Path:
    """Give the file that holds what ncu measured: one that `ncu import` wrote, or one in the cache."""
    if len(files) == 1 and store.is_store(files[0]) and implementation is None:
        return files[0]
    if any(store.is_store(file) for file in files):
        raise UsageError(
            "a file that ncu import wrote is read alone and unchanged",
            "give it alone and without --type, or import again",
        )
    return store.cached(files, implementation)


def _keep_only(measured: NcuData, kernel: str) -> None:
    """Forget the launches of other kernels."""
    from nsys_insight.sql.quoting import literal

    others = f"NOT contains(lower(kernel), {literal(kernel.lower())})"
    if not measured.rows(f"FROM ncu_kernels WHERE NOT ({others}) LIMIT 1"):
        names = [row["short_name"] for row in measured.rows("SELECT DISTINCT short_name FROM ncu_kernels ORDER BY 1")]
        raise UsageError(f"no kernel's name contains {kernel!r}", f"there are: {', '.join(names[:8])}")
    measured.connection.execute(f"DELETE FROM ncu_kernels WHERE {others}")


def _headroom(trace: Path, data: Path, tokens: int | None) -> tuple[list[dict[str, Any]], int | None]:
    """What the report `headroom` says, under the names that ncu gives the kernels, and the trace's wall."""
    with open_trace(trace, ncu=data) as opened:
        answer = opened.answer("headroom", tokens=tokens)
        for text in answer.notes:
            terminal.note(text)
        if not answer.row_count:
            raise TraceError(f"{trace} has none of the kernels that ncu profiled", "is it a trace of the same program?")
        wall = opened.dicts("SELECT sum(duration_ns)::BIGINT AS duration_ns FROM wall")
        return answer.dicts(), wall[0]["duration_ns"]


NCU = Command(
    "ncu",
    lambda: app,
    group="kernels",
    place=160,
    help="Which launch to profile, what ncu measured, and what to change",
    examples=("ncu plan trace.nsys-rep --top 2", "ncu report kernels.ncu-rep --trace trace.nsys-rep"),
    inner={
        "plan": ("ncu plan trace.nsys-rep --top 2", "ncu plan trace.nsys-rep --kernel softmax --command-only"),
        "analyze": ("ncu analyze trace.nsys-rep -- python3 decode.py", "ncu analyze trace.nsys-rep --kernel softmax"),
        "import": ("ncu import kernels.ncu-rep", "ncu import raw.csv details.csv -o decode.ncu.duckdb"),
        "report": ("ncu report kernels.ncu-rep", "ncu report kernels.ncu-rep --trace trace.nsys-rep -o ncu.md"),
        "diff": ("ncu diff before.ncu-rep after.ncu-rep", "ncu diff before.csv after.csv --kernel softmax"),
        "roofline": ("ncu roofline kernels.ncu-rep", "ncu roofline kernels.ncu-rep -o roofline.svg"),
    },
)
