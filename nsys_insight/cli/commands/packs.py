"""The commands about packs: ``packs``, ``packs show``, ``packs new``, ``packs check``, and ``run`` for a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nsys_insight.cli import completion, terminal
from nsys_insight.cli.commands import HELP_SETTINGS, Command
from nsys_insight.cli.flags import Flags, FormatOption, check_format
from nsys_insight.cli.run import make_pack_command, show
from nsys_insight.errors import QueryError, UsageError, cannot_write_error
from nsys_insight.packs import library
from nsys_insight.packs.pack import HINT
from nsys_insight.session.answer import build_answer, read_columns

TEMPLATE = '''/*
title = "{title}"

# How the pack counts; --help shows it.
description = """
Counts kernels by name and adds up their GPU time."""

# What to do with the answer.
reading = """
Look at the first rows: what is called often and takes little may be fused."""

# What an answer without rows means.
empty = "No kernels ran in this scope."

# A parameter is a flag of the command (here --least) and $least in the SQL. Its type follows from the default. Without
# a default, say type = "integer", "number", "text" or "boolean": it is NULL until given. choices = [..] limits a text.
# A name that ends in _ns takes durations: min_gap_ns is --min-gap 5us.
[params.least]
default = 1
help = "Leave out kernels that ran less often than this"

# Every column that the query returns, in its order. Units follow from the suffix: _ns, _bytes, _pct (0 to 100), _per_s,
# _ratio, _count.
[columns]
name = "The kernel"
calls = "How often it ran"
total_ns = "Sum of its durations"
*/
SELECT
    name,
    count(*) AS calls,
    sum(duration_ns)::BIGINT AS total_ns  -- sums are HUGEINT, which few readers know: cast them
FROM kernels
GROUP BY ALL
HAVING count(*) >= $least
ORDER BY total_ns DESC, name  -- to the last tie, so that the answer is the same every time
'''
COLUMNS = read_columns("cli/packs")

app = typer.Typer(
    help="List the packs: reports that are .sql files, built in and your own.",
    invoke_without_command=True,
    context_settings=HELP_SETTINGS,
)


@app.callback()
def _list_packs(context: typer.Context, fmt: FormatOption = "table") -> None:
    if context.invoked_subcommand is not None:
        return
    user_packs = library.user_packs()
    rows = [(pack.name, pack.title, "built in") for pack in library.built_in_packs().values()]
    rows += [(pack.name, pack.title, str(pack.path)) for pack in user_packs.packs.values()]
    show(build_answer(COLUMNS, rows, report="packs", title="Packs"), check_format(fmt), Flags(limit=0))
    for path, problem in user_packs.errors.items():
        terminal.note(f"{path} is not used: {problem}")


@app.command("show")
def show_pack(
    name: Annotated[str, typer.Argument(help="Its name, or a file.", autocompletion=completion.complete_reports)],
) -> None:
    """Print a pack: its header and its SQL."""
    print(library.get_pack(name).path.read_text(encoding="utf-8").rstrip())


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="The name of the command.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file instead of the folder of your packs.")
    ] = None,
) -> None:
    """Write a commented pack to start from, and print its path."""
    if not output and (reason := library.explain_unusable(name)):
        raise UsageError(reason, "choose another name")
    path = output or library.user_packs_folder() / f"{name}.sql"
    try:
        if not output:
            path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.replace("{title}", name.replace("-", " ").capitalize() + ", by GPU time"))
    except FileExistsError:
        raise UsageError(f"{path} exists already", "choose another name, or remove it first") from None
    except OSError as error:
        raise cannot_write_error(path, error) from None
    print(path)


@app.command()
def check(file: Annotated[Path, typer.Argument(help="The pack's file, or its name.")]) -> None:
    """Report what is wrong with a pack; exit 1 if something is."""
    from nsys_insight.session.pack_check import find_problems

    path = file if file.suffix == ".sql" else library.get_pack(str(file)).path
    pack_problems = find_problems(path)
    for problem in pack_problems:
        print(f"{path.name}: {problem}")
    if pack_problems:
        raise QueryError(f"{len(pack_problems)} problem{'s' * (len(pack_problems) > 1)} in {path}", HINT)
    print(f"{path.name}: OK")


def run(
    context: typer.Context,
    pack: Annotated[
        str | None,
        typer.Argument(
            metavar="PACK", help="A pack's file, or a report's name.", autocompletion=completion.complete_reports
        ),
    ] = None,
) -> None:
    """Run a report from a file: run ./mine.sql TRACE, with the flags that its header declares."""
    if pack in (None, "--help", "-h"):
        print(context.get_help())
        return
    report = library.get_pack(str(pack))
    app = typer.Typer(context_settings=HELP_SETTINGS)
    app.command()(make_pack_command(report))
    typer.main.get_command(app).main(context.args, prog_name=f"nsys-insight run {pack}", standalone_mode=False)


RUN = Command(
    "run",
    lambda: run,
    group="ask",
    place=130,
    help="Run a report from a file: run ./mine.sql TRACE",
    examples=("run ./mine.sql trace.nsys-rep", "run ./mine.sql trace.nsys-rep --steady --format json"),
    settings={"context_settings": {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}},
)


PACKS = Command(
    "packs",
    lambda: app,
    group="ask",
    place=140,
    help="List the packs: reports that are .sql files, built in and your own",
    examples=("packs", "packs new hot-norms"),
    subcommands={
        "show": ("packs show top", "packs show ./mine.sql"),
        "new": ("packs new hot-norms", "packs new hot-norms -o ./hot-norms.sql"),
        "check": ("packs check ./mine.sql", "packs check hot-norms"),
    },
)
