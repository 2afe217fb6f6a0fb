"""The commands that compare runs: `diff` and `check`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from nsys_insight import outputs, progress
from nsys_insight.cli import completion, terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, make_argument, make_command, make_flag, make_param_flag, make_step_flags
from nsys_insight.cli.run import open_traces, show
from nsys_insight.errors import Exit, UsageError
from nsys_insight.packs import library
from nsys_insight.records import parse_json
from nsys_insight.render import HUMAN_FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_insight.compare.budgets import Budget
    from nsys_insight.compare.direction import Better
    from nsys_insight.compare.runs import Run
    from nsys_insight.session.answer import Answer
    from nsys_insight.session.session import Session

# Suffixes of files with the output of a benchmark.
_BENCHMARK_OUTPUT_SUFFIXES = {".txt", ".log", ".out", ".jsonl"}
# Parameters of speed-of-light that say what a step computes.
_SPEED_PARAMS = ("flops_per_step", "parameters", "training", "precision", "peak", "gpu")
DIFF_HELP = """Compare two runs, or several runs of each side, per step: what changed, and whether it is noise.

A side is a trace, a baseline's name or file, or what a benchmark wrote: JSON of bench -o, hyperfine,
pytest-benchmark, Google Benchmark, nvbench, vLLM or SGLang, a list of numbers, or text with lines "RESULT name value
unit". Whether higher or lower values are better follows from a metric's unit and name, and is shown. Give BEFORE and
AFTER, or several runs: --before a1 a2 a3 --after b1 b2 b3. A folder stands for the traces in it. Traces of a side that
are ranks of one run are one run.

All processes of a run are compared. A metric of several ranks, or of processes that do the same work, is the mean over
them; each also has rows of its own, and so do the collectives. Processes that do different work decide separately.
--process selects one process by its id in one of the traces, and in the others the one with the same rank, GPU or
command.

The decision is about the step time, or, of a server whose steps are of several phases, about that of each phase:
revert if it got worse, accept if it got better by more than 3%. A difference is noise if it is less than a standard
deviation of either side, or if its interval, from a bootstrap over the steps that takes the similarity of neighboring
steps into account, contains 0. Intervals hold for all rows together, with 95% confidence. The steps of a single run do
not show how runs differ; times that differ by less than 2% are then noise. With several runs of both sides, each run's
mean is one measurement.

--by layer compares two implementations of one model. Matrix products, attention and communication are aligned in their
order, and what runs between the same two of them belongs together. Each row has the time and launches per step of both
sides, summed over the layers; the rows add up to the GPU time of a step.

Kernels are compared under their names where both sides launch them as often; else by what stays the same with another
tile, type or number; else, as a guess, by their place in the step.
"""
CHECK_HELP = """Check a run against limits or a baseline; exit 1 on failure.

Budgets are --max and --min with METRIC=VALUE, of the metrics of per-token and shares such as gpu_busy_pct: --max
launches_per_token=15 --max wall=2.5ms --min gpu_busy_pct=90. Or they are in a TOML file: tables [max] and [min] of
the same names and values. mfu_pct, tensor_pct, dram_pct and sms_active_pct are those of speed-of-light: --min
mfu_pct=40 --flops-per-step 1.2e15. An unknown metric also breaks its budget. With --baseline, the step time, launches,
syncs, allocations, copies and peak memory, and the step time of each phase that NVTX ranges name, may not be worse than
in a saved run by more than noise and, for times and memory, --tolerance.
"""


def make_diff_command() -> Callable[..., None]:
    """Make the command `diff`."""

    def run(  # noqa: PLR0913 - flags
        trace: Path | None,
        flags: Flags,
        *,
        other: Path | None,
        before: list[Path] | None,
        after: list[Path] | None,
        higher: list[str] | None,
        lower: list[str] | None,
        level: str | None,
        step_pair: str | None,
    ) -> None:
        from nsys_insight.compare.answer import answer, tables
        from nsys_insight.compare.comparison import compare

        files = [path for path in (trace, other) if path]
        steps = _parse_step_pair(step_pair) if step_pair is not None else ()
        if steps and len(files) == 1:
            files *= 2
        sides = _split_sides(files, before or [], after or [])
        fmt = flags.format
        if level is not None:
            layers = _compare_layers(sides, level, flags)
            _write_tables(layers, [layers], fmt, flags)
            return
        runs = measure_runs(sides, flags, steps)
        if steps:
            runs = [
                [replace(run, label=f"step {step}" + (f" of {run.label}" if other else "")) for run in side]
                for step, side in zip(steps, runs, strict=True)
            ]
        directions: dict[str, Better] = {**dict.fromkeys(higher or (), "higher"), **dict.fromkeys(lower or (), "lower")}
        with progress.show_task("comparing"):
            comparison = compare(*([run.with_directions(directions) for run in side] for side in runs))
        shown_tables = tables(comparison, brief=fmt == "markdown", has_all_rows=flags.wide)
        _write_tables(answer(comparison), shown_tables, fmt, flags)
        shown_count = len(shown_tables[0].rows()) if shown_tables else 0
        unchanged_count = sum(row.part == "run" for row in comparison.rows) - shown_count
        if fmt in HUMAN_FORMATS and not flags.wide and unchanged_count > 0:
            terminal.note(f"{unchanged_count} unchanged metrics are hidden; --wide shows them")
        if not steps and len(sides[0]) == len(sides[1]) == 1 and sides[0][0].resolve() == sides[1][0].resolve():
            terminal.note("both sides are the same file")

    several_runs = {"metavar": "FILE…", "help": "Several runs."}
    before_argument = make_argument(
        "trace", Path | None, "[BEFORE]", "The run before: a trace, a saved run, a benchmark."
    )
    return make_command(
        run,
        DIFF_HELP,
        make_argument("other", Path | None, "[AFTER]", "The run after the change."),
        make_flag("before", list[Path] | None, **several_runs),
        make_flag("after", list[Path] | None, **several_runs),
        make_flag(
            "higher", list[str] | None, metavar="METRIC", help="Higher values of this benchmark metric are better."
        ),
        make_flag(
            "lower", list[str] | None, metavar="METRIC", help="Lower values of this benchmark metric are better."
        ),
        make_flag(
            "level",
            str | None,
            "--by",
            metavar="layer",
            help="Two implementations of one model, layer by layer: kernels and their names may differ.",
        ),
        make_flag(
            "step_pair", str | None, "--steps", metavar="A,B", help="Two steps, by number: of BEFORE alone or of both."
        ),
        *make_step_flags(),
        argument=before_argument,
        omitted_fields=("explain",),
    )


def _parse_step_pair(text: str) -> tuple[int, int]:
    """Read the numbers of two steps.

    Raises:
        UsageError: These are not two numbers.
    """
    numbers = text.split(",")
    if len(numbers) != 2 or not all(number.strip().isdecimal() for number in numbers):
        raise UsageError(f"--steps takes two numbers, not {text!r}", "nsys-insight diff TRACE --steps 16,17")
    return int(numbers[0]), int(numbers[1])


def _compare_layers(sides: tuple[list[Path], list[Path]], level: str, flags: Flags) -> Answer:
    """Compare two traces layer by layer.

    Raises:
        UsageError: `level` is unknown, a side has several traces, or the programs cannot be aligned.
    """
    from nsys_insight.compare.layers import compare_layers, read_program

    if level != "layer":
        raise UsageError(f"--by takes layer, not {level!r}", "nsys-insight diff --by layer BEFORE AFTER")
    if max(map(len, sides)) > 1:
        raise UsageError("--by layer compares two traces", "name one trace of each side")
    with ExitStack() as stack, progress.show_task("aligning the programs"):
        traces = [stack.enter_context(open_traces(side, flags)) for side in sides]
        return compare_layers(*(read_program(trace, flags.steps) for trace in traces))


def _split_sides(files: list[Path], before: list[Path], after: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return the two sides: two files, or the files of --before and --after. A folder stands for all traces in it.

    Raises:
        UsageError: There are not two sides, or a folder holds no trace.
    """
    from nsys_insight.cli.trace_argument import resolve_trace_paths

    if not before and not after and len(files) == 2:
        before, after = files[:1], files[1:]
    elif files or not before or not after:
        raise UsageError(
            "two sides are compared, before and after",
            "nsys-insight diff before.nsys-rep after.nsys-rep, or --before a1 a2 a3 --after b1 b2 b3",
        )
    before, after = ([trace for path in side for trace in resolve_trace_paths([path])] for side in (before, after))
    return before, after


def make_check_command() -> Callable[..., None]:
    """Make the command `check`."""

    def run(  # noqa: PLR0913 - flags
        trace: Path | None,
        flags: Flags,
        *,
        budget: Path | None,
        baseline: Path | None,
        tolerance: float,
        param: list[str] | None,
        junit: Path | None,
        sarif: Path | None,
        markdown: Path | None,
        fail_on: list[str] | None,
        **values: Any,
    ) -> None:
        from nsys_insight.compare import baselines, ci_reports
        from nsys_insight.compare.budgets import Budget, check_budgets, from_toml

        budgets = [Budget.parse(bound, text) for bound in ("max", "min") for text in values[bound] or []]
        if budget:
            outputs.check_target(flags.output, [budget])
            budgets += from_toml(budget)
        if not budgets and not baseline and not fail_on:
            raise UsageError(
                "there is no budget to check",
                "nsys-insight check TRACE --max launches_per_token=9, --budget FILE, --baseline NAME, --fail-on CODE",
            )
        fmt = flags.format
        origin_notes = []
        if baseline and not baseline.exists() and not baseline.suffix:
            named_baseline = baselines.get_baseline(str(baseline))
            baseline, origin_notes = named_baseline.path, [baselines.describe_origin(named_baseline)]
        for path in (junit, sarif, markdown):
            outputs.check_target(path, [file for file in (trace, budget, baseline) if file])
        ((current_run,),) = measure_runs([[trace]], flags)
        current_run = _measure_speed(trace, current_run, budgets, flags, values)
        baseline_run = measure_runs([[baseline]], flags)[0][0] if baseline else None
        condition_differences = (
            _list_condition_differences(trace, flags, baseline, baselines.parse_params(param or [])) if baseline else []
        )
        check_result = check_budgets(
            current_run, budgets, baseline_run, tolerance, [*origin_notes, *condition_differences],
            finding_rows=_check_rules(trace, fail_on, flags) if fail_on else (),
        )  # fmt: skip
        if junit:
            outputs.write_output(junit, ci_reports.format_junit(check_result.answer))
        if sarif:
            outputs.write_output(sarif, ci_reports.format_sarif(check_result.answer, budget, baseline))
        if markdown:
            _write_tables(check_result.answer, [check_result.answer], "markdown", replace(flags, output=markdown))
        _write_tables(check_result.answer, [check_result.answer], fmt, flags)
        if check_result.is_broken:
            raise typer.Exit(Exit.FAILED)

    baseline_help = "A baseline's name or tag, or a saved run's file; this run may not be worse."
    tolerance_help = "Percentage by which a time may be worse than in the baseline; counts may not be worse."
    return make_command(
        run,
        CHECK_HELP,
        make_flag(
            "max",
            list[str] | None,
            metavar="METRIC=VALUE",
            help="At most this.",
            autocompletion=completion.complete_budgets,
        ),
        make_flag(
            "min",
            list[str] | None,
            metavar="METRIC=VALUE",
            help="At least this.",
            autocompletion=completion.complete_budgets,
        ),
        make_flag("budget", Path | None, metavar="FILE", help="A TOML file with tables [max] and [min]."),
        make_flag(
            "baseline", Path | None, metavar="NAME", help=baseline_help, autocompletion=completion.complete_baselines
        ),
        make_flag("tolerance", float, default=3.0, help=tolerance_help, min=0),
        make_flag(
            "param",
            list[str] | None,
            metavar="NAME=VALUE",
            help="A parameter of this workload, as the baseline has it.",
        ),
        make_flag(
            "fail_on",
            list[str] | None,
            "--fail-on",
            metavar="CODES",
            help="Fail if diagnose has a finding of these rules: codes, starts of codes (NSI2), names.",
        ),
        make_flag("junit", Path | None, metavar="FILE", help="Also write the budgets as JUnit test cases."),
        make_flag(
            "sarif", Path | None, metavar="FILE", help="Also write the broken budgets as SARIF, for annotations."
        ),
        make_flag(
            "markdown", Path | None, metavar="FILE", help="Also write the table as Markdown, for a comment or summary."
        ),
        *(make_param_flag(library.get_pack("speed-of-light").params[name]) for name in _SPEED_PARAMS),
        *make_step_flags(),
        omitted_fields=("explain",),
    )


def _measure_speed(
    trace: Path | None, run: Run, budgets: Sequence[Budget], flags: Flags, values: dict[str, Any]
) -> Run:
    """Add the metrics of speed-of-light to a run, if a budget names one."""
    from nsys_insight.compare.budgets import SPEED_METRICS, measure_speed

    if {budget.name for budget in budgets}.isdisjoint(SPEED_METRICS):
        return run
    params = {name: values[name] for name in _SPEED_PARAMS if values[name] is not None}
    with open_traces([trace] if trace else [], flags) as session:
        return measure_speed(session, run, flags.steps, params)


def _check_rules(trace: Path | None, codes: list[str], flags: Flags) -> list[tuple[Any, ...]]:
    """Evaluate rules on a trace, and return a row for each of them."""
    from nsys_insight.compare.budgets import check_findings
    from nsys_insight.diagnose.evaluate import evaluate
    from nsys_insight.diagnose.findings import read_finding_rules
    from nsys_insight.diagnose.rule_choice import RuleChoice, split_names

    if trace and trace.suffix.lower() == ".json":
        raise UsageError("--fail-on needs a trace: a saved run has no findings", "nsys-insight check TRACE --fail-on")
    rules = RuleChoice(split_names(codes, "--fail-on")).filter(read_finding_rules())
    with open_traces([trace] if trace else [], flags) as session:
        return check_findings(evaluate(session, rules, flags.steps), rules)


def measure_runs(
    sides: Sequence[Sequence[Path | None]], flags: Flags, step_by_side: Sequence[int] = ()
) -> list[list[Run]]:
    """Measure all runs per step. If a run has no steps, or the steps do different work, measure each full scope.

    With `step_by_side`, each side is a single step.

    The traces of a side that are the ranks of one run are one run. All processes of a trace are measured, or the
    process of `--process`. In the other traces, this is the process that is paired with it.
    """
    from nsys_insight.compare.comparison import explain_different_work
    from nsys_insight.compare.processes import measure_ranks, measure_run
    from nsys_insight.compare.runs import Run, measure_full_scope

    with ExitStack() as stack, progress.show_task("measuring the runs"):
        flags_by_side = [replace(flags, scope_step=step) for step in step_by_side] or [flags] * len(sides)
        sources = [
            [_open_source(path, side_flags, stack) for path in side]
            for side, side_flags in zip(sides, flags_by_side, strict=True)
        ]
        sources = _select_process(sources, flags, stack)
        ranks_by_side = [_open_ranks(*side, flags, stack) for side in zip(sides, sources, strict=True)]

        def measure_side(
            side: Sequence[Run | Session], ranks: Session | None, *, is_full_scope: bool
        ) -> list[Run | None]:
            traces = [source for source in side if not isinstance(source, Run)]
            if ranks is not None:
                return [measure_ranks(ranks, traces, flags.steps, is_full_scope=is_full_scope)]
            measure = measure_full_scope if is_full_scope else partial(measure_run, steps=flags.steps)
            return [source if isinstance(source, Run) else measure(source) for source in side]

        def measure_sides(*, is_full_scope: bool) -> list[list[Run | None]]:
            return [
                measure_side(*side, is_full_scope=is_full_scope) for side in zip(sources, ranks_by_side, strict=True)
            ]

        runs_per_step = measure_sides(is_full_scope=False)
        step_runs = [[run for run in side if run and run.unit != "trace"] for side in runs_per_step]
        difference = explain_different_work(*step_runs) if step_runs == runs_per_step and len(step_runs) == 2 else None
        if step_runs == runs_per_step and (
            not difference or any(isinstance(run, Run) for side in sources for run in side)
        ):
            return step_runs
        if difference:
            terminal.note(f"the steps of the two do different work: {difference}")
        return [[run for run in side if run] for side in measure_sides(is_full_scope=True)]


def _open_ranks(
    paths: Sequence[Path | None], sources: Sequence[Run | Session], flags: Flags, stack: ExitStack
) -> Session | None:
    """Open the traces of a side together if they are the ranks of one run."""
    from nsys_insight.compare.processes import are_ranks
    from nsys_insight.compare.runs import Run

    if len(sources) < 2 or any(isinstance(source, Run) for source in sources):
        return None
    traces = stack.enter_context(open_traces([path for path in paths if path], flags))
    return traces if are_ranks(traces) else None


def _open_source(path: Path | None, flags: Flags, stack: ExitStack) -> Run | Session:
    """Open a trace, or read a saved run or what a benchmark wrote. A process is selected later."""
    from nsys_insight.compare.benchmark_formats import make_run_from_json, read_run_from_text
    from nsys_insight.compare.runs import from_json, is_run

    path = _resolve_baseline(path, can_note=True)
    if path:
        outputs.check_target(flags.output, [path])
    if path and path.suffix.lower() in _BENCHMARK_OUTPUT_SUFFIXES:
        return read_run_from_text(path)
    if not path or path.suffix.lower() != ".json":
        return stack.enter_context(open_traces([path] if path else [], replace(flags, scope_process=None)))
    content = _read_json(path)
    return from_json(content, path) if is_run(content) else make_run_from_json(content, path)


def _select_process(sources: list[list[Run | Session]], flags: Flags, stack: ExitStack) -> list[list[Run | Session]]:
    """Narrow traces to the process of `--process`, and say which it is where it has another id.

    Raises:
        UsageError: No trace has such a process, or one has none that is paired with it.
    """
    from nsys_insight.compare.processes import find_process, list_members
    from nsys_insight.compare.runs import Run

    process = flags.scope_process
    if process is None:
        return sources
    members_by_trace = [
        [member for member, _ in list_members(source)]
        for side in sources
        for source in side
        if not isinstance(source, Run)
    ]
    reference = next((members for members in members_by_trace if process in {m.process_id for m in members}), [])

    def narrow(source: Run | Session) -> Run | Session:
        if isinstance(source, Run):
            return source
        process_id, matched_by = find_process(source, process, reference)
        if matched_by:
            terminal.note(
                f"process {process} is compared with process {process_id} of {source.path.name}, paired by {matched_by}"
            )
        return stack.enter_context(source.scope(process=process_id))

    return [[narrow(source) for source in side] for side in sources]


def _resolve_baseline(path: Path | None, *, can_note: bool = False) -> Path | None:
    """Return the file of a baseline if the path is a baseline's name and not a file; otherwise return the path.

    With `can_note`, a note says which file a name stands for.
    """
    from nsys_insight.compare import baselines

    if path is None or path.exists() or path.parent != Path():
        return path
    baseline = baselines.find_baseline(path.name)
    if baseline and can_note:
        terminal.note(baselines.describe_origin(baseline))
    return baseline.path if baseline else path


def _list_condition_differences(trace: Path | None, flags: Flags, baseline: Path, params: dict[str, str]) -> list[str]:
    """List differences of machine and workload between a trace and a baseline, if the baseline records them."""
    from nsys_insight.compare import baselines

    baseline_path = _resolve_baseline(baseline)
    if baseline_path is None or baseline_path.suffix != ".json":
        return []
    conditions = baselines.read(baseline_path).info
    if not conditions.machine and not conditions.params:
        return []
    with open_traces([trace] if trace else [], flags) as opened_trace:
        return baselines.list_differences(conditions, baselines.read_machine(opened_trace), params)


def _read_json(path: Path) -> Any:
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is not JSON: {error}"
        raise UsageError(f"{path} cannot be read: {reason}", "give a trace, or the JSON file of a benchmark") from None


def _write_tables(machine_answer: Answer, tables: Sequence[Answer], fmt: str, flags: Flags) -> None:
    """Write one table in a machine format, or several in a format for people.

    Markdown includes the notes, because it is read elsewhere.
    """
    from nsys_insight.render import write
    from nsys_insight.render.markdown import escape_prose

    output = flags.output
    if scope := flags.scope.filters:
        machine_answer, *tables = (
            replace(table, trace={**table.trace, "scope": scope}) for table in (machine_answer, *tables)
        )
    if fmt not in HUMAN_FORMATS:
        show(machine_answer, fmt, flags)
        return
    with ExitStack() as stack:
        stream = sys.stdout
        if output:
            temporary_path = stack.enter_context(outputs.open_output(output))
            stream = stack.enter_context(temporary_path.open("w", encoding="utf-8"))
        for index, table in enumerate(tables):
            if index:
                stream.write("\n")
            limit = flags.limit if flags.limit is not None else len(table.rows()) if not index else 12
            write(
                table, stream, fmt,
                limit=limit or None,
                width=None if output else terminal.get_width(),
                color=terminal.can_color(is_allowed=not flags.no_color and not output),
                full_names=flags.full_names,
                wide=flags.wide,
            )  # fmt: skip
        if fmt == "markdown":
            stream.write(
                "".join(f"\n- {escape_prose(text)}" for text in machine_answer.notes) + "\n"
                if machine_answer.notes
                else ""
            )
    sys.stdout.flush()
    for text in machine_answer.notes if fmt != "markdown" else ():
        terminal.note(text)


class _SidesCommand(TyperCommand):
    """A command whose --before and --after take all arguments up to the next flag."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Expand `--before a b` to `--before a --before b`, which the parser accepts."""
        expanded_args: list[str] = []
        side_flag = ""
        for index, word in enumerate(args):
            if word in ("--before", "--after"):
                side_flag = word
                if index + 1 == len(args) or args[index + 1].startswith("-"):
                    expanded_args.append(word)
            elif word.startswith("-"):
                side_flag = ""
                expanded_args.append(word)
            else:
                expanded_args += [side_flag, word] if side_flag else [word]
        return super().parse_args(ctx, expanded_args)


DIFF = Command(
    "diff",
    make_diff_command,
    group="compare",
    place=40,
    in_help=True,
    help="Compare two runs",
    examples=("diff before.nsys-rep after.nsys-rep", "diff --before a1.sqlite a2.sqlite --after b1.sqlite b2.sqlite"),
    settings={"cls": _SidesCommand},
)


CHECK = Command(
    "check",
    make_check_command,
    group="compare",
    place=50,
    in_help=True,
    help="Check a run against limits or a baseline; exit 1 on failure",
    examples=(
        "check trace.nsys-rep --max wall=2.5ms --min gpu_busy_pct=90",
        "check trace.nsys-rep --baseline main --junit check.xml",
    ),
)
