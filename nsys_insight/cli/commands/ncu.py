"""The commands `nsys-insight ncu …`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight import outputs
from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.commands.ncu_profile import analyze, plan, read_code
from nsys_insight.cli.flags import Flags, FormatOption, check_format
from nsys_insight.cli.run import draw, get_picture_suffix, open_trace, show
from nsys_insight.errors import TraceError, UsageError
from nsys_insight.ingest.ncu import store
from nsys_insight.render import FORMATS, choose_format
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from nsys_insight.ncu.data import NcuData

app = typer.Typer(
    help="Nsight Compute: which launch to profile, what ncu measured, and what to change.", no_args_is_help=True
)

_FORMATS = ("table", "markdown", "json")
_TYPE_HELP = f"What the kernels are written in, if the name does not say it: {', '.join(store.IMPLEMENTATIONS)}."

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="CSV pages (raw, details) or .ncu-rep reports of ncu, or a file that ncu import wrote."
    ),
]
Implementation = Annotated[str | None, typer.Option("--type", help=_TYPE_HELP)]
Against = Annotated[
    Path | None, typer.Option("--against", help="ncu data of a baseline, such as cuBLAS: its longest kernel.")
]
AgainstKernel = Annotated[
    str | None, typer.Option("--against-kernel", help="The baseline's name, in --against or else in the same files.")
]


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
        Path | None, typer.Option("--trace", help="Rank by the time that kernels take in this trace.")
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
    max_described_kernels: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="Kernels to describe in full; 0 is all.")
    ] = 5,
    fmt: Annotated[str | None, typer.Option("--format", "-f", help=f"One of {', '.join(_FORMATS)}.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
) -> None:
    """Say what bounds each kernel, why, and what to change first."""
    from nsys_insight.ncu import report as reports
    from nsys_insight.ncu import report_formats as formats
    from nsys_insight.ncu.data import NcuData

    fmt = fmt or (choose_format(output) if output else "table")
    if fmt not in _FORMATS:
        raise UsageError(f"a report cannot be written as {fmt!r}", f"choose one of: {', '.join(_FORMATS)}")
    inputs = [*files, *filter(None, (trace, against, code))]
    outputs.check_target(output, inputs)
    data_path = find_store(files, implementation)
    with NcuData(data_path) as ncu_data:
        baseline = _find_baseline(ncu_data, against, against_kernel)
        if kernel is not None:
            _delete_other_kernels(ncu_data, kernel)
        rows, wall_ns = ([], None) if trace is None else _query_headroom(trace, data_path, tokens)
        names = [row["report"] for row in ncu_data.rows("SELECT DISTINCT report FROM ncu_launches ORDER BY report")]
        context = reports.Context(rows, wall_ns, baseline, {} if code is None else read_code(code))
        kernel_report = reports.build(ncu_data, ", ".join(names), context)
        described_count = max_described_kernels or len(kernel_report.kernels)
        with outputs.open_text(output, inputs) as stream:
            if fmt == "json":
                formats.write_json(kernel_report, stream)
            elif fmt == "markdown":
                formats.write_markdown(kernel_report, stream, described_count)
            else:
                formats.write_text(kernel_report, stream, None if output else terminal.get_width(), described_count)
        if fmt != "json" and described_count < len(kernel_report.kernels):
            terminal.note(f"{described_count} of {len(kernel_report.kernels)} kernels in full; --limit 0 describes all")


@app.command()
def diff(
    before: Annotated[Path, typer.Argument(help="ncu data before the change: CSV, report or imported file.")],
    after: Annotated[Path, typer.Argument(help="ncu data after the change.")],
    *,
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="The target metric, a column of ncu_kernels; by default the one for the bound."),
    ] = None,
    kernel: Annotated[str | None, typer.Option("--kernel", "-k", help="Only kernels whose name contains this.")] = None,
    fmt: FormatOption = "table",
) -> None:
    """Compare two measurements: durations, the target metric, new and resolved findings, and the next step."""
    from nsys_insight.ncu import diff as diffs
    from nsys_insight.ncu.data import VIEW, NcuData

    check_format(fmt)
    with NcuData(find_store([before], None)) as old_data, NcuData(find_store([after], None)) as new_data:
        if metric is not None:
            column_rows = old_data.rows(
                f"SELECT column_name FROM duckdb_columns() WHERE table_name = '{VIEW}' AND data_type = 'DOUBLE'"
            )
            columns = [row["column_name"] for row in column_rows]
            if metric not in columns:
                raise UsageError(f"there is no metric {metric!r}", f"one of: {', '.join(columns)}")
        for ncu_data in (old_data, new_data):
            if kernel is not None:
                _delete_other_kernels(ncu_data, kernel)
        comparison = diffs.compare(old_data, new_data, metric)
        show(diffs.answer(comparison), fmt, Flags(limit=0))
        for fact in ("gpu", "compute_capability"):
            old_values, new_values = (
                sorted({row[fact] for row in ncu_data.rows(f"FROM {VIEW} WHERE {fact} IS NOT NULL")})
                for ncu_data in (old_data, new_data)
            )
            if old_values and new_values and old_values != new_values:
                terminal.note(f"measured on different GPUs: {', '.join(old_values)} and {', '.join(new_values)}")
                break
        terminal.note(f"decision: {diffs.decide(comparison)}")


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

    outputs.check_target(output, [*files, *([against] if against else [])])
    picture_suffix = get_picture_suffix(output)
    fmt = check_format(fmt or (choose_format(output) if output and not picture_suffix else "table"))
    with NcuData(find_store(files, None)) as ncu_data:
        baseline = _find_baseline(ncu_data, against, against_kernel)
        roofline_answer = rooflines.answer(ncu_data, kernel=kernel, baseline=baseline)
    if not (plot or picture_suffix):
        show(roofline_answer, fmt, Flags(output=output, limit=limit))
        return
    draw(roofline_answer, output, limit)


def _find_baseline(ncu_data: NcuData, against: Path | None, kernel: str | None) -> dict[str, Any] | None:
    """Return a baseline kernel from other ncu data, or by its name from the same data; None if not requested."""
    from nsys_insight.ncu import roofline as rooflines
    from nsys_insight.ncu.data import NcuData

    if against is not None:
        with NcuData(find_store([against], None)) as baseline_data:
            return rooflines.find_baseline(baseline_data, kernel)
    return None if kernel is None else rooflines.find_baseline(ncu_data, kernel)


def find_store(files: list[Path], implementation: str | None) -> Path:
    """Return the file with the ncu data: a file that `ncu import` wrote, or one in the cache.

    Raises:
        UsageError: An imported file is given with other files or with a type.
    """
    if len(files) == 1 and store.is_store(files[0]) and implementation is None:
        return files[0]
    if any(store.is_store(file) for file in files):
        raise UsageError(
            "a file that ncu import wrote is read alone and unchanged",
            "give it alone and without --type, or import again",
        )
    return store.make_cached_store(files, implementation)


def _delete_other_kernels(ncu_data: NcuData, kernel: str) -> None:
    """Delete the launches of kernels whose name does not contain `kernel`."""
    condition = f"NOT contains(lower(kernel), {literal(kernel.lower())})"
    if not ncu_data.rows(f"FROM ncu_kernels WHERE NOT ({condition}) LIMIT 1"):
        names = [row["short_name"] for row in ncu_data.rows("SELECT DISTINCT short_name FROM ncu_kernels ORDER BY 1")]
        raise UsageError(f"no kernel's name contains {kernel!r}", f"there are: {', '.join(names[:8])}")
    ncu_data.connection.execute(f"DELETE FROM ncu_kernels WHERE {condition}")


def _query_headroom(trace: Path, data_path: Path, tokens: int | None) -> tuple[list[dict[str, Any]], int | None]:
    """Return the rows of the report `headroom`, under ncu's names of kernels, and the trace's wall time in ns."""
    with open_trace(trace, ncu=data_path) as opened_trace:
        answer = opened_trace.answer("headroom", tokens=tokens)
        for text in answer.notes:
            terminal.note(text)
        if not answer.row_count:
            raise TraceError(f"{trace} has none of the kernels that ncu profiled", "is it a trace of the same program?")
        wall_time_rows = opened_trace.dicts("SELECT sum(duration_ns)::BIGINT AS duration_ns FROM wall")
        return answer.dicts(), wall_time_rows[0]["duration_ns"]


NCU = Command(
    "ncu",
    lambda: app,
    group="kernels",
    place=160,
    in_help=True,
    help="Profile kernels with ncu, and read what it measured",
    examples=("ncu plan trace.nsys-rep --top 2", "ncu report kernels.ncu-rep --trace trace.nsys-rep"),
    subcommands={
        "plan": ("ncu plan trace.nsys-rep --top 2", "ncu plan trace.nsys-rep --kernel softmax --command-only"),
        "analyze": ("ncu analyze trace.nsys-rep -- python3 decode.py", "ncu analyze trace.nsys-rep --kernel softmax"),
        "import": ("ncu import kernels.ncu-rep", "ncu import raw.csv details.csv -o decode.ncu.duckdb"),
        "report": ("ncu report kernels.ncu-rep", "ncu report kernels.ncu-rep --trace trace.nsys-rep -o ncu.md"),
        "diff": ("ncu diff before.ncu-rep after.ncu-rep", "ncu diff before.csv after.csv --kernel softmax"),
        "roofline": ("ncu roofline kernels.ncu-rep", "ncu roofline kernels.ncu-rep -o roofline.svg"),
    },
)
