"""SQL over NVIDIA Nsight Systems traces.

import nsys_insight

trace = nsys_insight.open("trace.nsys-rep")
trace.top()                                   # a polars frame
trace.run("gaps", min_gap_ns=5000)
trace.scope(nvtx="decode_step").per_token()
trace.sql("SELECT name, count(*) FROM kernels GROUP BY ALL ORDER BY 2 DESC")
nsys_insight.diff("before.nsys-rep", "after.nsys-rep").title   # "Improved: wall ..."
nsys_insight.report(trace, "trace.html")      # a page to share
nsys_insight.check(trace, max={"wall": "2.5ms"}).title         # "The limit is met"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from nsys_insight.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from nsys_insight.notebook.html import HtmlAnswer
    from nsys_insight.trace import Trace

    TraceOrFile: TypeAlias = str | Path | Trace

__all__ = ["Trace", "__version__", "check", "diff", "open", "report"]


if not TYPE_CHECKING:  # a type checker would accept every name

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

    from nsys_insight.compare.answer import answer
    from nsys_insight.compare.comparison import compare
    from nsys_insight.compare.measure import measure_runs
    from nsys_insight.compare.step_times import parse_step_times
    from nsys_insight.notebook.html import make_html_answer
    from nsys_insight.packs.flag_texts import naming_parameters
    from nsys_insight.packs.step_options import parse_options
    from nsys_insight.trace import Trace

    notes: list[str] = []
    given_times = options.pop("step_time_ns", None)
    sides = [[side] if isinstance(side, str | Path | Trace) else side for side in (before, after)]
    with ExitStack() as stack, naming_parameters():
        step_times_ns = parse_step_times(given_times) if given_times is not None else None
        sources = [[_open_source(run, stack, notes.append) for run in side] for side in sides]
        runs = measure_runs(sources, parse_options(options), note=notes.append)
        result = answer(compare(*runs, step_times_ns=step_times_ns))
    return make_html_answer(replace(result, notes=tuple(dict.fromkeys([*notes, *result.notes]))))


def report(trace: TraceOrFile | Sequence[str | Path], output: str | Path, **options: Any) -> Path:
    """Write the report to share: `.html` is a self-contained page, `.md` is Markdown. Return the path.

    The file is that of ``nsys-insight report``: the diagnosis, pictures, and the answer of each report.

    Args:
        trace: A file, an open trace, in whose scope it is, or the files of a run's ranks.
        output: The file to write. A file that this package did not write is not replaced.
        **options: How steps are found: the options of `StepOptions`.

    Raises:
        UsageError: An option is wrong, the suffix is another one, or the file cannot be written.
        TraceError: The trace cannot be read.
    """
    from contextlib import ExitStack
    from pathlib import Path

    from nsys_insight import outputs
    from nsys_insight.packs.flag_texts import naming_parameters
    from nsys_insight.packs.step_options import parse_options
    from nsys_insight.page import choose_kind, write_page
    from nsys_insight.trace import Trace

    target = Path(output)
    kind = choose_kind(target)
    with ExitStack() as stack, naming_parameters():
        opened_trace = trace if isinstance(trace, Trace) else stack.enter_context(Trace(trace))
        outputs.check_target(target, opened_trace.paths)
        outputs.refuse_foreign(target)  # before minutes of work
        outputs.write_output(target, write_page(opened_trace, kind, parse_options(options)))
    return target


def check(  # noqa: PLR0913 - kinds of limits, by keyword
    run: TraceOrFile,
    *,
    max: Mapping[str, float | str] | None = None,  # noqa: A002 - the flags of the command
    min: Mapping[str, float | str] | None = None,  # noqa: A002
    budget: str | Path | None = None,
    baseline: TraceOrFile | None = None,
    tolerance_pct: float = 3.0,
    fail_on: str | Sequence[str] = (),
    **options: Any,
) -> HtmlAnswer:
    """Check a run against limits or a baseline: a row for each limit, as ``nsys-insight check`` writes them.

    The column `verdict` is ok, broken or unknown; a run passes if all are ok. `limit` and `actual` are in the unit of
    `metric`, per step or token: ns if its name ends in `_ns`, bytes if in `_bytes`, percent if in `_pct`, else a
    number. `columns` describes all columns, `title` states the result in a sentence.

    Args:
        run: A file, the name of a baseline, or an open trace, in whose scope it is checked.
        max: Limits by metric of the report `per_token`; times and sizes with a unit: ``{"wall": "2.5ms"}``.
        min: Lower limits: ``{"gpu_busy_pct": 90}``.
        budget: A TOML file with the tables max and min.
        baseline: An earlier run, which this one may not be worse than by more than noise.
        tolerance_pct: By how much a time may be worse than in the baseline, in percent.
        fail_on: Rules of `diagnose` that may not have a finding: codes, starts of codes, names; a text has
            commas between them. Needs a trace.
        **options: How steps are found: the options of `StepOptions`.

    Raises:
        UsageError: There is no limit, a metric or rule is unknown, or the runs cannot be compared.
        TraceError: A trace cannot be read, or has no CUDA events.
    """
    from contextlib import ExitStack
    from dataclasses import replace
    from pathlib import Path

    from nsys_insight.compare.budgets import Budget, check_budgets, check_findings, from_toml
    from nsys_insight.compare.measure import measure_runs
    from nsys_insight.diagnose.evaluate import evaluate
    from nsys_insight.diagnose.findings import read_finding_rules
    from nsys_insight.diagnose.rule_choice import RuleChoice, split_names
    from nsys_insight.errors import UsageError
    from nsys_insight.notebook.html import make_html_answer
    from nsys_insight.packs.flag_texts import naming_parameters
    from nsys_insight.packs.step_options import parse_options
    from nsys_insight.trace import Trace

    budgets = [
        Budget(bound, name, str(value))
        for bound, limits in (("max", max), ("min", min))
        for name, value in (limits or {}).items()
    ]
    budgets += from_toml(Path(budget)) if budget else []
    if not budgets and baseline is None and not fail_on:
        raise UsageError("there is no limit to check", 'give max={"wall": "2.5ms"}, min, budget, baseline or fail_on')
    names, notes = [fail_on] if isinstance(fail_on, str) else fail_on, list[str]()
    with ExitStack() as stack, naming_parameters():
        steps = parse_options(options)
        source = _open_source(run, stack, notes.append)
        ((measured_run,),) = measure_runs([[source]], steps, note=notes.append)
        earlier = [] if baseline is None else [[_open_source(baseline, stack, notes.append)]]
        earlier_runs = measure_runs(earlier, steps, note=notes.append) if earlier else [[None]]
        rules = RuleChoice(split_names(names, "fail_on")).filter(read_finding_rules()) if fail_on else []
        if rules and not isinstance(source, Trace):
            raise UsageError("fail_on needs a trace: a saved run has no findings", "name the trace")
        finding_rows = check_findings(evaluate(source, rules, steps), rules) if rules else ()
        result = check_budgets(
            measured_run, budgets, earlier_runs[0][0], tolerance_pct, notes, finding_rows=finding_rows
        )
    return make_html_answer(replace(result, notes=tuple(dict.fromkeys(result.notes))))


def _open_source(run: TraceOrFile, stack: ExitStack, note: Callable[[str], None]) -> Any:
    """Return a run to measure: an open trace, a saved run, or a trace that is closed with the stack."""
    from pathlib import Path

    from nsys_insight.compare import baselines
    from nsys_insight.compare.measure import read_run
    from nsys_insight.trace import Trace

    if isinstance(run, Trace):
        return run
    path = baselines.find_file(Path(run), note)
    return read_run(path) or stack.enter_context(Trace(path, note=note))
