"""The command ``rule``: the rules of ``diagnose``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, check_format
from nsys_insight.cli.run import show
from nsys_insight.render import FORMATS
from nsys_insight.text.cells import wrap


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


RULE = Command(
    "rule",
    lambda: print_rule,
    group="first",
    place=15,
    help="The rules of diagnose: what they look for, what to do",
    examples=("rule", "rule NSI201"),
)
