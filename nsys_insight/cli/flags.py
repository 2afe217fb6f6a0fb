"""The flags of a command: its own, and those that every report has, which it gets as one typed object."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight.cli import completion
from nsys_insight.errors import UsageError
from nsys_insight.ingest.scope import Scope
from nsys_insight.packs.step_options import AUTO, PARAMS, StepOptions, checked
from nsys_insight.render import FORMATS, format_for

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from nsys_insight.packs.pack import Param

DEFAULT_LIMIT = 20
_MOST_ROWS = 10**15
_ID = {"min": 0, "max": 2**63 - 1, "metavar": "N"}

TraceArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[TRACE]",
        help="A .nsys-rep, .qdrep or .sqlite file, or a parquetdir. By default $NSYS_INSIGHT_TRACE, else the only trace"
        " in this folder, else the one used last here.",
        show_default=False,
    ),
]
_TRACES = (
    "A .nsys-rep, .qdrep or .sqlite file, or a parquetdir; several are the ranks of a run: "
    "'run/rank*.nsys-rep'. By default $NSYS_INSIGHT_TRACE, else the only trace in this folder, else the one "
    "used last here."
)


def formats_of(incomplete: str) -> list[str]:
    """Complete formats."""
    return [name for name in FORMATS if name.startswith(incomplete)]


FormatOption = Annotated[
    str, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}.", autocompletion=formats_of)
]


@dataclass(frozen=True)
class Flags:
    """The flags that every report has, as they were typed; and what they say about steps, checked."""

    scope_nvtx: str | None = None
    scope_phase: str | None = None
    scope_steady: bool = False
    scope_step: int | None = None
    scope_from: str | None = None
    scope_to: str | None = None
    scope_device: int | None = None
    scope_process: int | None = None
    scope_stream: int | None = None
    fmt: str | None = None
    output: Path | None = None
    limit: int | None = None
    full_names: bool = False
    wide: bool = False
    columns: str | None = None
    csv_safe: bool = False
    explain: bool = False
    no_color: bool = False
    cache: bool | None = None
    memory: str | None = None
    threads: int | None = None
    timeout: str | None = None
    ncu: Path | None = None
    steps: StepOptions = AUTO

    @property
    def scope(self) -> Scope:
        """The part of the trace that is meant.

        Raises:
            UsageError: A time is none, or the window is empty.
        """
        return Scope(
            nvtx=self.scope_nvtx,
            phase=self.scope_phase,
            steady=self.scope_steady or None,
            step=self.scope_step,
            from_ns=_time(self.scope_from),
            to_ns=_time(self.scope_to),
            device=self.scope_device,
            process=self.scope_process,
            stream=self.scope_stream,
        )

    @property
    def timeout_s(self) -> float | None:
        """How many seconds a query may take; None is no limit.

        Raises:
            UsageError: It is not a duration.
        """
        from nsys_insight.text.units import parse_duration

        text = self.timeout
        if text is None:
            return None
        return parse_duration(f"{text}s" if text.isdecimal() else text, flag="--timeout") / 1e9

    @property
    def format(self) -> str:
        """The format that is meant: by name, else by the suffix of the file.

        Raises:
            UsageError: There is none of that name, or `--csv-safe` is given and it is another than CSV.
        """
        fmt = checked_format(self.fmt or (format_for(self.output) if self.output else "table"))
        if self.csv_safe and fmt != "csv":
            raise UsageError(f"--csv-safe is for CSV, and this is {fmt}", "add --format csv")
        return fmt


DEFAULTS = Flags()
# Those that say how a trace is opened.
LOADING = ("cache", "memory", "threads", "timeout", "ncu")


def checked_format(fmt: str) -> str:
    """Return the format if there is one of that name.

    Raises:
        UsageError: There is none.
    """
    if fmt not in FORMATS:
        hint = (
            f"give a file with SQL as --file {fmt}" if fmt.endswith(".sql") else f"choose one of: {', '.join(FORMATS)}"
        )
        raise UsageError(f"there is no format {fmt!r}", hint)
    return fmt


def with_flags(
    run: Callable[..., None],
    text: str,
    *own: inspect.Parameter,
    argument: inspect.Parameter | None = None,
    without: Collection[str] = (),
) -> Callable[..., None]:
    """Make of a function of (argument, flags, own flags by name) the command that Typer reads.

    Args:
        run: The function; what the user typed of the flags that every report has comes as one `Flags`.
        text: Its help.
        own: Its own flags. They take their short names from those of every report: the ``-f`` of ``sql`` is a file.
            Those of `step_flags` are passed as `Flags.steps`.
        argument: Its argument, if that is not the trace.
        without: Fields of `Flags` that it does not have.
    """
    first = argument or inspect.Parameter(
        "trace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=TraceArgument
    )
    shared = [parameter for parameter in (*_scope(), *_output(), *_loading()) if parameter.name not in without]
    taken = {name for parameter in own for name in _option(parameter).param_decls or () if len(name) == 2}
    for parameter in shared:
        option = _option(parameter)
        option.param_decls = tuple(name for name in option.param_decls or () if name not in taken)

    def command(**given: Any) -> None:
        flags = Flags(**{parameter.name: given.pop(parameter.name) for parameter in shared})
        if PARAMS.keys() <= given.keys():
            flags = replace(flags, steps=checked({name: given.pop(name) for name in PARAMS}))
        run(given.pop(first.name), flags, **given)

    command.__signature__ = inspect.Signature([first, *own, *shared])  # type: ignore[attr-defined]
    command.__annotations__ = {}
    command.__doc__ = text
    return command


def argument(name: str, kind: Any, metavar: str, text: str) -> inspect.Parameter:
    """An argument that may be left out."""
    said = typer.Argument(metavar=metavar, help=text, show_default=False)
    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, place, default=None, annotation=Annotated[kind, said])


def traces_argument() -> inspect.Parameter:
    """The traces of a command that takes several."""
    return argument("traces", list[Path] | None, "[TRACE]...", _TRACES)


def flag(name: str, kind: Any, *names: str, default: object = None, **option: Any) -> inspect.Parameter:
    """A flag of the command line; without `names` it is called as the parameter is."""
    default = False if kind is bool and default is None else default
    said = typer.Option(*names, **{"show_default": default not in (None, False), **option})
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, said])


def flag_of(param: Param) -> inspect.Parameter:
    """The flag of a pack's parameter."""
    kind = str if param.has_unit else param.kind
    text = param.help + (f"; one of: {', '.join(param.choices)}" if param.choices else "")
    default = None if param.default is None else kind(param.default)
    return flag(
        param.name,
        kind | None,
        f"{param.flag}/--no-{param.flag[2:]}" if kind is bool else param.flag,
        default=default,
        help=text,
        show_default=default is not None,
        autocompletion=_completing(param),
    )


def _completing(param: Param) -> Callable[..., list[str]] | None:
    """What completes a parameter: its choices, or names of the trace."""
    if param.choices:
        return lambda incomplete: [choice for choice in param.choices if choice.startswith(incomplete)]
    return completion.of_trace(param.name) if param.name in ("step_range", "kernel", "name") else None


def scope_command(run: Callable[[Flags], None], text: str) -> Callable[..., None]:
    """Make the command of a function of `Flags` that takes those of the scope alone."""
    shared = _scope()

    def command(**given: Any) -> None:
        run(Flags(**given))

    command.__signature__ = inspect.Signature(shared)  # type: ignore[attr-defined]
    command.__annotations__ = {}
    command.__doc__ = text
    return command


def step_flags() -> list[inspect.Parameter]:
    """The flags that say what steps are."""
    return [flag_of(param) for param in PARAMS.values()]


def _time(text: str | None) -> int | None:
    from nsys_insight.text.units import parse_duration

    if text is None:
        return None
    # A trace's time may be negative: what happened before the capture range began.
    return -parse_duration(text[1:]) if text.startswith("-") else parse_duration(text)


def _option(parameter: inspect.Parameter) -> Any:
    return parameter.annotation.__metadata__[0]


def _scope() -> list[inspect.Parameter]:
    flags = {
        "nvtx": (str, "Only what was launched inside NVTX ranges of this name (* and ? are wildcards)."),
        "phase": (str, "Only this phase, as NVTX ranges name it: prefill, decode, mixed, forward, or a range's name."),
        "steady": (bool, "Only the steady steps: without warm-up, prefill and the time between steps."),
        "step": (int, "Only this step, by its number in nsys-insight steps."),
        "from": (str, "Only events that begin at or after this time of the trace: 120ms, or plain ns."),
        "to": (str, "Only events that begin before this time of the trace."),
        "device": (int, "Only this CUDA device."),
        "process": (int, "Only this process id."),
        "stream": (int, "Only this CUDA stream."),
    }
    return [
        flag(
            f"scope_{name}",
            kind if kind is bool else kind | None,
            f"--{name}",
            help=text,
            rich_help_panel="Scope",
            autocompletion=completion.of_trace(name) if name in completion.IN_TRACES else None,
            **(_ID if kind is int else {}),
        )
        for name, (kind, text) in flags.items()
    ]


def _output() -> list[inspect.Parameter]:
    panel: dict[str, Any] = {"rich_help_panel": "Output"}
    csv_safe = "In CSV, put ' before texts that a spreadsheet would take for formulas: = + - @ and so on."
    formats = f"One of {', '.join(FORMATS)}; by default from the suffix of -o, else table."
    limit = (
        f"Show this many rows; 0 is all. Tables show {DEFAULT_LIMIT} by default, files and machine formats show all."
    )
    return [
        flag("fmt", str | None, "--format", "-f", help=formats, autocompletion=formats_of, **panel),
        flag("output", Path | None, "--output", "-o", help="Write to this file.", **panel),
        flag("limit", int | None, "--limit", "-n", help=limit, min=0, max=_MOST_ROWS, **panel),
        flag("wide", bool, "--wide", help="Show all columns, even in a narrow terminal.", **panel),
        flag("columns", str | None, "--columns", help="Only these, in this order: total_ns,calls.", **panel),
        flag("full_names", bool, "--full-names", help="Show names exactly as in the trace.", **panel),
        flag("csv_safe", bool, "--csv-safe", help=csv_safe, **panel),
        flag("explain", bool, "--explain", help="Print the SQL and the views it reads, without running it.", **panel),
        flag("no_color", bool, "--no-color", help="No colors; NO_COLOR does the same.", **panel),
    ]


def _loading() -> list[inspect.Parameter]:
    panel: dict[str, Any] = {"rich_help_panel": "Loading"}
    cache = (
        "Build a DuckDB copy in the cache folder first (for many questions about a big trace), or do "
        "not use that folder and leave nothing in it, not even an export; by default a copy is used if there is one."
    )
    ncu = (
        "Nsight Compute data: a file that ncu import wrote, or a CSV page or report of ncu. By default "
        "NAME.ncu.duckdb next to the trace or in this folder, if there is one."
    )
    memory = "Memory that a query may use before it spills to disk, such as 2GB; by default chosen for the machine."
    threads = "Threads that a query may use; by default one per core, up to 8."
    return [
        flag("cache", bool | None, "--cache/--no-cache", help=cache, **panel),
        flag("memory", str | None, "--memory", help=memory, **panel),
        flag("threads", int | None, "--threads", help=threads, min=1, max=256, **panel),
        flag("timeout", str | None, "--timeout", help="Stop a query that takes longer, such as 30s.", **panel),
        flag("ncu", Path | None, "--ncu", help=ncu, **panel),
    ]
