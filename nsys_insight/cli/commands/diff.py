"""The command `diff`: two runs, or several of each side."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import outputs, progress
from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.comparison import describe_changed_range, make_page, measure_files, write_tables
from nsys_insight.cli.flags import Flags, make_argument, make_command, make_flag, make_step_flags
from nsys_insight.cli.run import open_traces
from nsys_insight.errors import UsageError
from nsys_insight.render import HUMAN_FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.compare.direction import Better
    from nsys_insight.compare.runs import Run
    from nsys_insight.session.answer import Answer

_HELP = """Compare two runs, or several runs of each side, per step: what changed, and whether it is noise.

A side is a trace, a baseline's name or file, or what a benchmark wrote: JSON of bench -o, hyperfine,
pytest-benchmark, Google Benchmark, nvbench, vLLM or SGLang, a list of numbers, or text with lines "RESULT name value
unit". Whether higher or lower values are better follows from a metric's unit and name, and is shown. Give BEFORE and
AFTER, or several runs: --before a1 --before a2 --after b1 --after b2. A folder stands for the traces in it, a pattern
for the files that it fits: --after 'b*.nsys-rep'. Traces of a side that are ranks of one run are one run.

All processes of a run are compared. A metric of several ranks, or of processes that do the same work, is the mean over
them; each also has rows of its own, and so do the collectives. Processes that do different work decide separately.
--process selects one process by its id in one of the traces, and in the others the one with the same rank, GPU or
command.

The answer is the decision and the metrics that changed; --all adds the others, and a table each of phases, ranks,
kernel families and kernels.

The decision is about the step time, or, of a server whose steps are of several phases, about that of each phase:
revert if it got worse, accept if it got better by more than 3%. A difference is noise if it is less than a standard
deviation of either side, or if its interval, from a bootstrap over the steps that takes the similarity of neighboring
steps into account, contains 0. Intervals hold for all rows together, with 95% confidence. The steps of a single run do
not show how runs differ; times that differ by less than 2% are then noise. With several runs of both sides, each run's
mean is one measurement.

nsys makes a step longer if the host bounds it, so part of a change can be nsys's. --step-time BEFORE,AFTER gives the
times of a step without nsys: the decision is then about these, and the times under nsys are beside them.

--by layer compares two implementations of one model. Matrix products, attention and communication are aligned in their
order, and what runs between the same two of them belongs together. Each row has the time and launches per step of both
sides, summed over the layers; the rows add up to the GPU time of a step.

-o changed.html writes a page that compares two traces, with a step of each on one scale.

Kernels are compared under their names where both sides launch them as often; else by what stays the same with another
tile, type or number; else, as a guess, by their place in the step.
"""

_PAGE_SUFFIXES = (".html", ".htm")


def make_diff_command() -> Callable[..., None]:
    """Make the command `diff`."""

    def run(  # noqa: PLR0913 - flags
        files: list[Path] | None,
        flags: Flags,
        *,
        before: list[Path] | None,
        after: list[Path] | None,
        higher: list[str] | None,
        lower: list[str] | None,
        level: str | None,
        step_pair: str | None,
        step_times: str | None,
        is_complete: bool,
    ) -> None:
        from nsys_insight.compare.answer import answer, summary_table, tables
        from nsys_insight.compare.comparison import compare
        from nsys_insight.compare.step_times import EXAMPLE, parse_step_times

        steps = _parse_step_pair(step_pair) if step_pair is not None else ()
        step_times_ns = parse_step_times(step_times.split(",")) if step_times is not None else None
        has_one_file = bool(steps) and len(files or []) == 1
        sides = _split_sides((files or []) * (1 + has_one_file), before or [], after or [])
        is_one_each = len(sides[0]) == len(sides[1]) == 1
        is_same_file = not steps and is_one_each and sides[0][0].resolve() == sides[1][0].resolve()
        is_page = flags.fmt is None and flags.output and flags.output.suffix.lower() in _PAGE_SUFFIXES
        if step_times_ns and (steps or level is not None or is_page):
            raise UsageError("--step-time is for the comparison of two runs, as text", EXAMPLE)
        if is_page and flags.output:
            if steps or level is not None:
                raise UsageError(
                    "a page compares two traces, not two steps or layers", f"write text: -o {flags.output.stem}.md"
                )
            text = make_page([file for side in sides for file in side], flags)
            outputs.write_output(flags.output, text, [sides[0][0], sides[1][0]])
            terminal.note(f"{flags.output} written")
            return
        fmt = flags.format
        # A scope, which may name what the trace does not have, is checked in the comparison.
        has_other_flags = flags.output or flags.scope.filters or fmt not in HUMAN_FORMATS
        if is_same_file and not has_other_flags and sides[0][0].exists():
            print(f"Both sides are the same file: {sides[0][0]}")
            return
        if level is not None:
            layers = _compare_layers(sides, level, flags)
            write_tables(layers, [layers], fmt, flags)
            return
        runs = measure_files(sides, flags, steps)
        if steps:
            runs = [
                [_name_step(run, step, has_one_file=has_one_file) for run in side]
                for step, side in zip(steps, runs, strict=True)
            ]
        directions: dict[str, Better] = {**dict.fromkeys(higher or (), "higher"), **dict.fromkeys(lower or (), "lower")}
        with progress.show_task("comparing"):
            named_runs = ([run.with_directions(directions) for run in side] for side in runs)
            comparison = compare(*named_runs, step_times_ns=step_times_ns)
        shows_all = is_complete or flags.wide or flags.limit == 0
        summary = summary_table(comparison)
        shown_tables = tables(comparison, brief=fmt == "markdown", has_all_rows=True) if shows_all else [summary]
        full_answer = answer(comparison)
        full_answer = replace(full_answer, notes=(*describe_changed_range(sides, flags, steps), *full_answer.notes))
        write_tables(full_answer, shown_tables, fmt, flags)
        hidden_count = len(comparison.rows) - len(summary.rows())
        if fmt in HUMAN_FORMATS and not shows_all and hidden_count > 0:
            terminal.note(f"{hidden_count} more rows, by metric, phase, family and kernel: --all")
        if is_same_file:
            terminal.note("both sides are the same file")

    files_argument = make_argument(
        "files", list[Path] | None, "[BEFORE] [AFTER]",
        "The run before and the run after the change: a trace, a saved run or a benchmark each.",
    )  # fmt: skip
    return make_command(
        run,
        _HELP,
        make_flag("before", list[Path] | None, metavar="FILE", help="A run before; repeat it for several runs."),
        make_flag("after", list[Path] | None, metavar="FILE", help="A run after; repeat it for several runs."),
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
        make_flag(
            "step_times",
            str | None,
            "--step-time",
            metavar="BEFORE,AFTER",
            help="Times of a step without nsys, as the program or bench measured them: 610us,515us. They decide.",
        ),
        make_flag(
            "is_complete", bool, "--all", help="Every metric, phase, rank, kernel family and kernel, not only changes."
        ),
        *make_step_flags(has_step_time=False),
        argument=files_argument,
        omitted_fields=("explain",),
    )


def _name_step(run: Run, step: int, *, has_one_file: bool) -> Run:
    """Label a run with its step. Where the step is not a steady one, its scope has no steps, but it is one."""
    run = replace(run, label=f"step {step}" if has_one_file else f"step {step} of {run.label}")
    return replace(run, unit="step", method="those of --steps") if run.unit == "trace" else run


def _parse_step_pair(text: str) -> tuple[int, int]:
    """Read the numbers of two steps."""
    numbers = text.split(",")
    if len(numbers) != 2 or not all(number.strip().isdecimal() for number in numbers):
        raise UsageError(f"--steps takes two numbers, not {text!r}", "nsys-insight diff TRACE --steps 16,17")
    return int(numbers[0]), int(numbers[1])


def _compare_layers(sides: tuple[list[Path], list[Path]], level: str, flags: Flags) -> Answer:
    """Compare two traces layer by layer."""
    from nsys_insight.compare.layers import compare_layers, read_program

    if level != "layer":
        raise UsageError(f"--by takes layer, not {level!r}", "nsys-insight diff --by layer BEFORE AFTER")
    if max(map(len, sides)) > 1:
        raise UsageError("--by layer compares two traces", "name one trace of each side")
    with ExitStack() as stack, progress.show_task("aligning the programs"):
        traces = [stack.enter_context(open_traces(side, flags)) for side in sides]
        return compare_layers(*(read_program(trace, flags.steps) for trace in traces))


def _split_sides(files: list[Path], before: list[Path], after: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return the two sides: two files, or the files of --before and --after. A folder stands for all traces in it."""
    from nsys_insight.cli.trace_argument import resolve_trace_paths

    if files and (before or after):
        raise UsageError(
            f"--before and --after take one name each, and {files[0]} has no flag",
            "repeat the flag, or quote a pattern: --before a1.sqlite --before a2.sqlite --after 'b*.sqlite'",
        )
    if len(files) == 2:
        before, after = files[:1], files[1:]
    if files[2:] or not before or not after:
        raise UsageError(
            "two sides are compared, before and after",
            "nsys-insight diff before.nsys-rep after.nsys-rep, or --before 'a*.nsys-rep' --after 'b*.nsys-rep'",
        )
    before, after = ([trace for path in side for trace in resolve_trace_paths([path])] for side in (before, after))
    return before, after


DIFF = Command(
    "diff",
    make_diff_command,
    group="compare",
    place=40,
    in_help=True,
    help="Compare two runs",
    examples=("diff before.nsys-rep after.nsys-rep", "diff --before a1.sqlite --before a2.sqlite --after 'b*.sqlite'"),
)
