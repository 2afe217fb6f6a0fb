"""SQL over NVIDIA Nsight Systems traces.

import nsys_insight

trace = nsys_insight.open("trace.nsys-rep")
trace.top()                                   # a polars frame
trace.run("gaps", min_gap_ns=5000)
trace.scope(nvtx="decode_step").per_token()
trace.sql("SELECT name, count(*) FROM kernels GROUP BY ALL ORDER BY 2 DESC")
nsys_insight.diff("before.nsys-rep", "after.nsys-rep").title   # "Improved: wall ..."
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from nsys_insight.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_insight.notebook.html import HtmlAnswer
    from nsys_insight.trace import Trace

    TraceOrFile: TypeAlias = str | Path | Trace

__all__ = ["Trace", "__version__", "diff", "open"]


def __getattr__(name: str) -> Any:
    """Import `Trace` when it is used: the command line starts without it."""
    if name == "Trace":
        from nsys_insight.trace import Trace

        return Trace
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def open(path: str | Path | Sequence[str | Path], **options: Any) -> Trace:  # noqa: A001 - nsys_insight.open reads as gzip.open does
    """Open a trace, or several of one run: a `.nsys-rep`, its SQLite export, or a parquetdir.

    Takes the `options` of `Trace`.
    """
    from nsys_insight.trace import Trace

    return Trace(path, **options)


def diff(
    before: TraceOrFile | Sequence[TraceOrFile], after: TraceOrFile | Sequence[TraceOrFile], **options: Any
) -> HtmlAnswer:
    """Compare two runs, or several runs of each side, per step: what changed, and whether it is noise.

    The answer is that of ``nsys-insight diff``. Its `title` is the decision in a sentence, and its first row is the
    decision: accept, small, revert, indistinguishable or unknown, in the column `verdict`. A row for each metric of a
    step, phase, rank, collective, kernel family and kernel follows (column `part`). `before`, `after`, `delta` and the
    standard deviations are in the unit of `metric`: ns if its name ends in `_ns`, bytes if in `_bytes`, else a number,
    per step or token. `delta_pct` and its interval, `low_pct` to `high_pct`, are in percent of `before`. `columns`
    describes all columns, and `notes` has the caveats.

    Args:
        before: The run before: a file, the name of a baseline, or an open trace, in whose scope it is compared. Several
            are runs of this side, or the ranks of one run.
        after: The run after the change.
        **options: How steps are found: the options of `StepOptions`. `step_time_ns` is a pair here, the times of a step
            before and after without nsys, which then decide.

    Raises:
        UsageError: An option is wrong, a file is neither a saved run nor what a benchmark wrote, or the runs cannot be
            compared.
        TraceError: A trace cannot be read, or has no CUDA events.
    """
    from contextlib import ExitStack
    from dataclasses import replace
    from pathlib import Path

    from nsys_insight.compare import baselines
    from nsys_insight.compare.answer import answer
    from nsys_insight.compare.comparison import compare
    from nsys_insight.compare.measure import measure_runs, read_run
    from nsys_insight.compare.step_times import parse_step_times
    from nsys_insight.notebook.html import make_html_answer
    from nsys_insight.packs.step_options import parse_options
    from nsys_insight.trace import Trace

    notes: list[str] = []
    given_times = options.pop("step_time_ns", None)
    step_times_ns = parse_step_times(given_times) if given_times is not None else None

    def open_source(run: TraceOrFile) -> Any:
        if isinstance(run, Trace):
            return run
        path = baselines.find_file(Path(run), notes.append)
        return read_run(path) or stack.enter_context(Trace(path, note=notes.append))

    sides = [[side] if isinstance(side, str | Path | Trace) else side for side in (before, after)]
    with ExitStack() as stack:
        sources = [[open_source(run) for run in side] for side in sides]
        runs = measure_runs(sources, parse_options(options), note=notes.append)
        result = answer(compare(*runs, step_times_ns=step_times_ns))
    return make_html_answer(replace(result, notes=tuple(dict.fromkeys([*notes, *result.notes]))))
