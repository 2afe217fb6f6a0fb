"""The commands ``diagnose``, ``demo`` and ``rule``, and the greeting of the program without a command."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import (
    Flags,
    check_format,
    make_command,
    make_flag,
    make_step_flags,
    make_traces_argument,
)
from nsys_insight.cli.run import open_traces, show, write_text
from nsys_insight.errors import InsightError, UsageError
from nsys_insight.packs.step_options import AUTO
from nsys_insight.paths import demo_trace
from nsys_insight.render import FORMATS, HUMAN_FORMATS
from nsys_insight.text.cells import color_severities, printable, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_LISTED = 10
_TEMPLATES = ("full", "agent")
# What the demo suggests next. `demo` is the name of the sample trace.
_DEMO_COMMANDS = ("top demo", "per-token demo", "fusion demo", "report demo -o demo.html")

_NEXT_COMMANDS = "nsys-insight diagnose    what to do about it\nnsys-insight --help      all reports\n"

HELP = """Show on one screen what bounds the run, what it costs, and what to do first.

The headline has the verdict of classify, the step time, and where it goes: the shares of GPU busy time and of idle
time by cause add up to 100%. At most seven findings follow, the largest possible saving first, each with its
evidence, what to do, when that would be wrong, and the command that shows more. Anything below 1% of the wall time
is not a finding. Times are of the run under nsys, which slows the host. Savings are of the step without nsys if that is
known: give its time with --step-time, or it is estimated from the calls of the trace. They are upper bounds: another
cause may take the place of one that is removed. The last lines say what cannot be determined from the trace, and
how to capture it.

Several traces, a folder of them, or a trace of several processes may be the ranks of a run. The headline then says
which rank the others wait for, how long and why; everything else is about that rank.

Each finding has the code of its rule: nsys-insight rule CODE explains it. --select and --ignore choose rules, and so
does a file nsys-insight.toml of the project: lists select and ignore in its table [diagnose]. The file is searched in
this folder and in those above it, up to the root of the repository or your home folder; a file of another user is not
read. The answer names the file and the findings that it hides; --select NSI shows everything. Only diagnose reads it.

Machine formats have one finding per row, with findings that belong to another one below it; JSON has the headline as
its summary.
"""


def make_diagnose_command() -> Callable[..., None]:
    """Make the command ``diagnose``."""

    def run(
        traces: list[Path] | None, flags: Flags, *, select: list[str] | None, ignore: list[str] | None, template: str
    ) -> None:
        from nsys_insight.diagnose.rule_choice import make_choice, read_project_choice

        fmt = flags.format
        if template not in _TEMPLATES:
            raise UsageError(f"there is no template {template!r}", f"choose one of: {', '.join(_TEMPLATES)}")
        choice = make_choice(select or (), ignore or ()) if select or ignore else read_project_choice()
        with open_traces(traces or [], flags, can_expand_folders=True) as trace:
            from nsys_insight.diagnose import text as texts
            from nsys_insight.diagnose.diagnosis import diagnose

            diagnosis = diagnose(trace, flags.steps, choice=choice)
            if fmt not in HUMAN_FORMATS:
                show(texts.make_answer(diagnosis), fmt, flags)
                return
            if template == "agent":
                from nsys_insight.diagnose.bounded_text import write_short_diagnosis

                rendered_text = write_short_diagnosis(diagnosis)
            elif fmt == "markdown":
                rendered_text = texts.write_markdown(diagnosis, flags.limit)
            else:
                rendered_text = texts.write_text(diagnosis, None if flags.output else terminal.get_width(), flags.limit)
                if terminal.can_color(is_allowed=not flags.no_color and not flags.output):
                    rendered_text = color_severities(rendered_text)
            write_text(rendered_text, flags.output, diagnosis.notes)

    omitted_fields = ("explain", "full_names")
    return make_command(
        run,
        HELP,
        make_flag(
            "select",
            list[str] | None,
            metavar="CODES",
            help="Use only these rules: codes, starts of codes (NSI2), names; nsys-insight rule lists them.",
        ),
        make_flag(
            "template",
            str,
            "--template",
            default="full",
            help="full, or agent: at most 3,000 characters for a coding agent.",
            show_default=False,
        ),
        make_flag("ignore", list[str] | None, metavar="CODES", help="Leave these rules out."),
        *make_step_flags(),
        argument=make_traces_argument(),
        omitted_fields=omitted_fields,
    )


def greet() -> bool:
    """Print the brief of the trace in this folder, and what to run next. Return False if no trace can be read.

    If the folder has several traces, and none was used before, list them.
    """
    from nsys_insight.cli.trace_argument import list_traces, resolve_trace_path

    try:
        path, _ = resolve_trace_path(None)
    except InsightError:
        try:
            names = [str(path) for path in list_traces(Path())]
        except InsightError:
            return False
        if len(names) > 1:
            remainder = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
            print(printable(f"{len(names)} traces are in this folder: {', '.join(names[:_MAX_LISTED])}{remainder}"))
            print(printable(f"To diagnose one: {shlex.join(['nsys-insight', 'diagnose', names[0]])}"))
            print("All commands: nsys-insight help")
        return len(names) > 1
    from nsys_insight.diagnose.brief import read_brief
    from nsys_insight.diagnose.brief_text import write_page

    try:
        with open_traces([path], Flags()) as trace:
            page = write_page(read_brief(trace, AUTO), terminal.get_width())
            sys.stdout.write(f"{page}\n{_NEXT_COMMANDS}")
    except InsightError as error:
        terminal.note(error.message)
        return False
    return True


def demo() -> None:
    """Diagnose a sample trace: a small decoder that PyTorch runs eagerly on an H200. Its name is demo."""
    from nsys_insight.trace import Trace

    with Trace(demo_trace()) as trace:
        diagnosis_text = trace.diagnose().text(terminal.get_width()).replace(str(trace.path), "demo")
        diagnosis_text = color_severities(diagnosis_text) if terminal.can_color(is_allowed=True) else diagnosis_text
    print(f"$ nsys-insight diagnose demo\n\n{diagnosis_text}\nTry next, on this trace or on yours:")
    print("\n".join(f"  nsys-insight {command}" for command in _DEMO_COMMANDS))


def complete_rules(incomplete: str) -> list[str]:
    """Complete codes of rules."""
    from nsys_insight.diagnose.findings import read_finding_rules

    return [rule.code for rule in read_finding_rules() if rule.code.startswith(incomplete.upper())]


def print_rule(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[CODE]",
            help="Code or name of a rule: NSI201, d2h-sync. Without one, all rules are listed.",
            autocompletion=complete_rules,
        ),
    ] = None,
    fmt: Annotated[str, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}, for the list.")] = "table",
) -> None:
    """Explain a rule of diagnose: what it looks for, what to do in each framework, how the saving is estimated.

    diagnose --select NSI2 uses only the rules whose code starts like this, --ignore NSI402 leaves one out. A file
    nsys-insight.toml in the project makes that permanent: a table [diagnose] with lists select and ignore. diagnose
    then names the file and the findings that it hides. check and report do not read it.
    """
    from nsys_insight.diagnose.findings import read_finding_rules
    from nsys_insight.diagnose.rule_choice import matches_any, split_names
    from nsys_insight.diagnose.rule_text import make_answer, write_rule

    rules = sorted(read_finding_rules(), key=lambda rule: rule.code)
    names = split_names([name], "nsys-insight rule") if name else ()
    chosen_rules = [rule for rule in rules if not names or matches_any(rule, names)]
    if len(chosen_rules) != 1:
        show(make_answer(chosen_rules), check_format(fmt), Flags(limit=0))
        return
    for line in write_rule(chosen_rules[0]).splitlines():
        sys.stdout.write("\n".join(wrap(line, terminal.get_width())) + "\n")


DIAGNOSE = Command(
    "diagnose",
    make_diagnose_command,
    group="first",
    place=10,
    in_help=True,
    help="What bounds the run, what it costs, and what to do first",
    examples=("diagnose trace.nsys-rep", "diagnose 'run/rank*.nsys-rep' --steady"),
)

DEMO = Command(
    "demo", lambda: demo, group="first", place=90, in_help=True, help="Diagnose a sample trace", examples=("demo",)
)

RULE = Command(
    "rule",
    lambda: print_rule,
    group="first",
    place=15,
    help="The rules of diagnose: what they look for, what to do",
    examples=("rule", "rule NSI201"),
)
