"""The command line: every pack is a command, and a few more beside them."""

from __future__ import annotations

import io
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from nsys_insight import __version__, pack_commands, packs, terminal, user_packs
from nsys_insight.command import checked_format, pack_command, show
from nsys_insight.compare_commands import SidesCommand, baseline_app, check_command, diff_command
from nsys_insight.convert_command import convert_command
from nsys_insight.diagnose_command import diagnose_command
from nsys_insight.errors import Exit, InsightError, UsageError
from nsys_insight.flags import TraceArgument  # noqa: TC001 - Typer reads annotations at run time
from nsys_insight.kernel_commands import classify_command, fusion_command, roofline_command
from nsys_insight.ncu.commands import app as ncu_app
from nsys_insight.render import FORMATS
from nsys_insight.report_command import report_command
from nsys_insight.sql_command import shell_command, sql_command

# What the demo asks: the report, its flags as typed, the scope, the parameters.
DEMO: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
    ("info", "", {}, {}),
    ("top", " --limit 8", {}, {}),
    ("launches", " --limit 8", {}, {}),
    ("syncs", " --nvtx decode_step", {"nvtx": "decode_step"}, {}),
    ("gap-sizes", "", {}, {}),
    ("per-token", "", {}, {}),
)

app = typer.Typer(
    name="nsys-insight",
    help="SQL over NVIDIA Nsight Systems traces: where the GPU time went. Start with: nsys-insight diagnose TRACE",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - Typer passes the flag's value
    if wanted:
        print(f"nsys-insight {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001, FBT002 - a flag, and its callback acts on it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    pack_dir: Annotated[  # noqa: ARG001 - `_add_user_packs` has read it, because it brings commands
        Path | None,
        typer.Option("--pack-dir", help="The folder of your packs: .sql files, each a command.", show_default=False),
    ] = None,
) -> None:
    if context.invoked_subcommand is None:
        from nsys_insight.diagnose_command import greet

        if not greet():
            print(context.get_help())


app.command(name="diagnose", short_help="What bounds the run, what it costs, and what to do first")(diagnose_command())

_SPECIAL = {"classify": classify_command, "roofline": roofline_command, "fusion": fusion_command}
for _pack in packs.built_in().values():
    _command = _SPECIAL.get(_pack.name, partial(pack_command, _pack))()
    app.command(name=_pack.name, short_help=_pack.title, rich_help_panel="Reports")(_command)
    for _alias in _pack.aliases:
        app.command(name=_alias, short_help=f"nsys's name of {_pack.name}", hidden=True)(_command)

for _name, _class, _command, _about in (
    ("diff", SidesCommand, diff_command(), "What a change moved, and whether to keep it"),
    ("check", None, check_command(), "Hold a run to a budget or a baseline; exit 1 if it is broken"),
):
    app.command(name=_name, cls=_class, short_help=_about, rich_help_panel="Compare")(_command)
app.add_typer(baseline_app(), name="baseline", rich_help_panel="Compare")

app.command(name="sql", rich_help_panel="Explore")(sql_command())
app.command(
    rich_help_panel="Explore",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)(pack_commands.run)
app.command(name="shell", rich_help_panel="Explore")(shell_command())
app.add_typer(pack_commands.app, name="packs", rich_help_panel="Explore")


@app.command(rich_help_panel="Explore")
def schema(
    view: Annotated[str | None, typer.Argument(help="A view; left out: all of them.", show_default=False)] = None,
    fmt: Annotated[str, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}.")] = "table",
) -> None:
    """Describe the views that sql can query, and their columns."""
    from nsys_insight.schema import described

    show(described(view), checked_format(fmt), limit=0)


@app.command(rich_help_panel="Explore")
def demo() -> None:
    """Run the main reports on a sample trace: a small decoder that PyTorch runs eagerly on an H200."""
    from nsys_insight.paths import demo_trace
    from nsys_insight.trace import Trace

    path = demo_trace()
    with Trace(path) as trace:
        for report, flags, scope, params in DEMO:
            print(f"$ nsys-insight {report} {path.name}{flags}\n", flush=True)
            with trace.scope(**scope) as scoped:
                show(scoped.answer(report, **params), limit=8 if "--limit" in flags else None)
            print(flush=True)


app.add_typer(ncu_app, name="ncu", rich_help_panel="Nsight Compute")


@app.command(rich_help_panel="Traces")
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all of it.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Show the folder of exports and DuckDB copies, which is never needed for correctness."""
    from nsys_insight import cache_folder

    if clear:
        cache_folder.prune(max_age_days=0)
    print(cache_folder.location())


@app.command(rich_help_panel="Traces")
def export(
    trace: TraceArgument = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file or folder to write to.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,  # noqa: FBT002
) -> None:
    """Export a report to SQLite with your nsys, into the current folder or to -o."""
    from nsys_insight.export import export as export_report
    from nsys_insight.resolve import resolve

    path, said = resolve(trace)
    if said:
        terminal.note(said)
    with terminal.export_progress(path.name) as progress:
        print(export_report(path, output, force=force, note=terminal.note, progress=progress))


app.command(name="convert", rich_help_panel="Traces")(convert_command())
app.command(name="report", short_help="Write a page or Markdown to hand over", rich_help_panel="Reports")(
    report_command()
)


def _add_user_packs(arguments: list[str]) -> None:
    """Make the user's packs commands, those in the folder that ``--pack-dir`` names, wherever it stands."""
    for at, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag == "--pack-dir":
            count = 1 if equals else 2
            folder = value or "".join(arguments[at + 1 : at + 2])
            if not Path(folder).expanduser().is_dir():
                raise UsageError(f"there is no folder {folder!r}", "--pack-dir is a folder of .sql files")
            os.environ[user_packs.FOLDER_VARIABLE] = folder
            del arguments[at : at + count]
            break
    for pack in user_packs.load().packs.values():
        app.command(name=pack.name, short_help=pack.title, rich_help_panel="Your reports")(pack_command(pack))


def main() -> None:
    """Run the command line, and turn what went wrong into one sentence, a hint and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        # Tables have lines and µ in them, also in a pipe whose locale says ASCII.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    # Whoever is told to end has temporary files to remove, and perhaps an nsys to stop.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(Exit.TERMINATED))
    try:
        _add_user_packs(sys.argv)
        code = app(standalone_mode=False, prog_name="nsys-insight")
    except InsightError as error:
        terminal.complain(error)
        code = error.exit_code
    except BrokenPipeError:
        # Whoever read our output has enough, such as head; Python must not try to flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = Exit.OK
    except RuntimeError as error:
        if str(error) != "Query interrupted":  # what DuckDB makes of Ctrl-C
            raise
        code = Exit.INTERRUPTED
    except Exception as error:
        # Typer's own complaints about the command line; their class is not public.
        if getattr(error, "exit_code", None) != Exit.USAGE or not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        hint = f"{context.command_path if context else 'nsys-insight'} --help"
        if len(sys.argv) > 1 and Path(sys.argv[1]).exists():
            hint = f"the report comes first: nsys-insight top {sys.argv[1]}"
        terminal.complain(UsageError(error.format_message(), hint))
        code = Exit.USAGE
    sys.exit(code or Exit.OK)
