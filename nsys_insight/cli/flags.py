"""Command flags: a command's own flags, and the flags that every report has, collected in a `Flags` object."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight.cli import completion
from nsys_insight.errors import UsageError
from nsys_insight.ingest.scope import Scope
from nsys_insight.packs.model_config import count_parameters
from nsys_insight.packs.step_options import AUTO, PARAMS, StepOptions, parse_options
from nsys_insight.render import FORMATS, choose_format
from nsys_insight.text.units import parse_duration, parse_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from nsys_insight.packs.pack import Param

DEFAULT_LIMIT = 20
_MAX_ROWS = 10**15
# Parameters of steps that `diff` takes for each side.
_TIME_PARAMS = {"step_time_ns"}
_ID_SETTINGS = {"min": 0, "max": 2**63 - 1, "metavar": "N"}

TraceArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[TRACE]",
        help="A .nsys-rep, .qdrep or .sqlite file, or a parquetdir. Default: $NSYS_INSIGHT_TRACE, the only trace in"
        " this folder, or the last one used here.",
        show_default=False,
    ),
]
_TRACES_HELP = (
    "A .nsys-rep, .qdrep or .sqlite file, or a parquetdir; several are the ranks of a run: "
    "'run/rank*.nsys-rep'. Default: $NSYS_INSIGHT_TRACE, the only trace in this folder, or the last one used "
    "here."
)


def complete_formats(incomplete: str) -> list[str]:
    """Complete names of formats."""
    return [name for name in FORMATS if name.startswith(incomplete)]


FormatOption = Annotated[
    str, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}.", autocompletion=complete_formats)
]


@dataclass(frozen=True)
class Flags:
    """The flags that every report has, as typed, and the checked options for finding steps."""

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
    sort: str | None = None
    name_pattern: str | None = None
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
        """Return the selected part of the trace.

        Raises:
            UsageError: A time cannot be parsed, or the window is empty.
        """
        return Scope(
            nvtx=self.scope_nvtx,
            phase=self.scope_phase,
            steady=self.scope_steady or None,
            step=self.scope_step,
            from_ns=_parse_time(self.scope_from),
            to_ns=_parse_time(self.scope_to),
            device=self.scope_device,
            process=self.scope_process,
            stream=self.scope_stream,
        )

    @property
    def timeout_s(self) -> float | None:
        """Return the time limit of a query in seconds; None is no limit.

        Raises:
            UsageError: The text is not a duration.
        """
        return None if self.timeout is None else parse_seconds(self.timeout, flag="--timeout")

    @property
    def format(self) -> str:
        """Return the output format: from `--format`, else from the suffix of the file.

        Raises:
            UsageError: The format is unknown, or `--csv-safe` is given and the format is not CSV.
        """
        fmt = check_format(self.fmt or (choose_format(self.output) if self.output else "table"))
        if self.csv_safe and fmt != "csv":
            raise UsageError(f"--csv-safe is for CSV, and this is {fmt}", "add --format csv")
        return fmt


DEFAULT_FLAGS = Flags()
# The panels of the flags that every report has.
SHARED_PANELS = ("Scope", "Output", "Loading")
# Flags that sort and select the rows of a table, and their fields of `Flags`.
_ROW_FLAGS = {"sort": "sort", "name": "name_pattern"}
# Fields of `Flags` that control how a trace is opened.
LOADING_FLAGS = ("cache", "memory", "threads", "timeout", "ncu")


def check_format(fmt: str, *own_formats: str) -> str:
    """Return the format if its name is known: one of all commands, or one of a command's own.

    Raises:
        UsageError: The name is unknown.
    """
    known_formats = (*FORMATS, *own_formats)
    if fmt not in known_formats:
        hint = (
            "it is a format of check"
            if fmt == "github"
            else f"give a file with SQL as --file {fmt}"
            if fmt.endswith(".sql")
            else f"choose one of: {', '.join(known_formats)}"
        )
        raise UsageError(f"there is no format {fmt!r}", hint)
    return fmt


def make_command(
    run: Callable[..., None],
    text: str,
    *own_flags: inspect.Parameter,
    argument: inspect.Parameter | None = None,
    omitted_fields: Collection[str] = (),
    has_rows: bool = False,
) -> Callable[..., None]:
    """Make a command for Typer from a function of (argument, flags, own flags by name).

    Args:
        run: The function. It receives the flags that every report has as one `Flags`.
        text: The command's help.
        own_flags: The command's own flags. Their short names take precedence: ``-f`` of ``sql`` is a file. The flags
            of `make_step_flags` are passed as `Flags.steps`.
        argument: The command's argument, if that is not the trace.
        omitted_fields: Fields of `Flags` for which the command has no flag.
        has_rows: Whether the answer is one table: then its rows can be sorted and selected by name.
    """
    main_argument = argument or inspect.Parameter(
        "trace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=TraceArgument
    )
    # A report may have a parameter with the name of one of these flags.
    omitted_fields = {*omitted_fields, *(_ROW_FLAGS[flag.name] for flag in own_flags if flag.name in _ROW_FLAGS)}
    shared = [parameter for parameter in _make_shared_flags(has_rows=has_rows) if parameter.name not in omitted_fields]
    _refuse_same_names([main_argument, *shared, *own_flags])
    own_short_names = {
        name for parameter in own_flags for name in _get_option(parameter).param_decls or () if len(name) == 2
    }
    for parameter in shared:
        option = _get_option(parameter)
        option.param_decls = tuple(name for name in option.param_decls or () if name not in own_short_names)

    def command(**values: Any) -> None:
        flags = Flags(**{parameter.name: values.pop(parameter.name) for parameter in shared})
        if PARAMS.keys() - _TIME_PARAMS <= values.keys():
            step_params = PARAMS.keys() & values.keys()
            flags = replace(flags, steps=parse_options({name: values.pop(name) for name in step_params}))
        run(values.pop(main_argument.name), flags, **values)

    return _declare(command, [main_argument, *own_flags, *shared], text)


def add_flags(run: Callable[..., None], *flags: inspect.Parameter) -> Callable[..., None]:
    """Make a command for Typer from a function with annotated flags, which receives more flags by name."""
    own_flags = [
        flag for flag in inspect.signature(run, eval_str=True).parameters.values() if flag.kind is not flag.VAR_KEYWORD
    ]
    return _declare(partial(run), [*own_flags, *flags], inspect.cleandoc(run.__doc__ or ""))


def _declare(command: Callable[..., None], flags: list[inspect.Parameter], text: str) -> Callable[..., None]:
    """Give a function the flags and the help that Typer reads from a command."""
    command.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]
    command.__annotations__ = {}
    command.__doc__ = text
    return command


def make_shared_command() -> Callable[..., None]:
    """Make a command that has only the flags of every report, for their help."""
    text = "The flags that every report has: which part of the trace, how to show it, how to load it."
    return _declare(lambda **_: None, _make_shared_flags(has_rows=True), text)


def _make_shared_flags(*, has_rows: bool) -> list[inspect.Parameter]:
    return [
        *_make_scope_flags(),
        *(_make_row_flags() if has_rows else ()),
        *_make_output_flags(),
        *_make_loading_flags(),
    ]


def _make_row_flags() -> list[inspect.Parameter]:
    """Make the flags of `_ROW_FLAGS`, which sort and select the rows of any table."""
    panel: dict[str, Any] = {"rich_help_panel": "Output"}
    sort = "Sort by this column, the largest first (text from A): total_ns, or calls:asc."
    name = "Only rows in which a name contains this, or another text, such as the family; * and ? are wildcards."
    return [
        make_flag("sort", str | None, "--sort", metavar="COLUMN", help=sort, **panel),
        make_flag("name_pattern", str | None, "--name", metavar="PATTERN", help=name, **panel),
    ]


def _refuse_same_names(flags: Iterable[inspect.Parameter]) -> None:
    """Refuse flags of the same name, which a user's report may declare."""
    used_names: set[str] = set()
    for flag in flags:
        option = _get_option(flag)  # in an annotation, Typer keeps the first name of a flag as its default
        option_names = [name for name in (option.default, *(option.param_decls or ())) if str(name).startswith("--")]
        names = {flag.name, *(name.partition("/")[0] for name in option_names)}
        if names & used_names:
            raise UsageError(
                f"this report has a parameter {flag.name}, and every report takes this name",
                f"rename [params.{flag.name}] and ${flag.name} in its file",
            )
        used_names |= names


def make_argument(name: str, kind: Any, metavar: str, text: str) -> inspect.Parameter:
    """Make an optional argument."""
    typer_argument = typer.Argument(metavar=metavar, help=text, show_default=False)
    parameter_kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, parameter_kind, default=None, annotation=Annotated[kind, typer_argument])


def make_traces_argument() -> inspect.Parameter:
    """Make the argument of a command that takes several traces."""
    return make_argument("traces", list[Path] | None, "[TRACE]...", _TRACES_HELP)


def make_flag(name: str, kind: Any, *names: str, default: object = None, **settings: Any) -> inspect.Parameter:
    """Make a flag; without `names` the flag is named after the parameter."""
    default = False if kind is bool and default is None else default
    typer_option = typer.Option(*names, **{"show_default": default not in (None, False), **settings})
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, typer_option]
    )


def make_param_flag(param: Param) -> inspect.Parameter:
    """Make the flag of a pack's parameter."""
    kind = str if param.has_unit else param.kind
    text = param.help + (f"; one of: {', '.join(param.choices)}" if param.choices else "")
    default = None if param.default is None else kind(param.default)
    settings: dict[str, Any] = {}
    if param.is_parameter_count:
        settings = {"parser": count_parameters, "metavar": "COUNT|FILE"}
    return make_flag(
        param.name,
        kind | None,
        f"{param.flag}/--no-{param.flag[2:]}" if kind is bool else param.flag,
        default=default,
        help=text,
        show_default=default is not None,
        autocompletion=_choose_completer(param),
        **settings,
    )


def _choose_completer(param: Param) -> Callable[..., list[str]] | None:
    """Choose the completer of a parameter: its choices, or names in the trace."""
    if param.choices:
        return lambda incomplete: [choice for choice in param.choices if choice.startswith(incomplete)]
    return completion.make_trace_completer(param.name) if param.name in ("step_range", "kernel", "name") else None


def make_scope_command(run: Callable[[Flags], None], text: str) -> Callable[..., None]:
    """Make a command from a function of `Flags`; the command has only the flags of the scope."""
    return _declare(lambda **values: run(Flags(**values)), _make_scope_flags(), text)


def make_step_flags(*, has_step_time: bool = True) -> list[inspect.Parameter]:
    """Make the flags that define what a step is, and its time without nsys."""
    return [make_param_flag(param) for name, param in PARAMS.items() if has_step_time or name not in _TIME_PARAMS]


def _parse_time(text: str | None) -> int | None:
    if text is None:
        return None
    # Times before the start of the capture range are negative.
    return -parse_duration(text[1:]) if text.startswith("-") else parse_duration(text)


def _get_option(parameter: inspect.Parameter) -> Any:
    return parameter.annotation.__metadata__[0]


def _make_scope_flags() -> list[inspect.Parameter]:
    nvtx = (
        "Only what was launched inside NVTX ranges of this name; busy and idle time are those during the ranges. "
        "* and ? are wildcards, as is … of a shortened name, and # is any number."
    )
    flags = {
        "nvtx": (str, nvtx),
        "phase": (str, "Only this phase, as NVTX ranges name it: prefill, decode, mixed, forward, or a range's name."),
        "steady": (bool, "Only the steady steps: without warm-up, prefill and the time between steps."),
        "step": (int, "Only this step, by its number in nsys-insight steps."),
        "from": (str, "Start of the time window, such as 120ms (a plain number is ns) or 10% of the wall time."),
        "to": (str, "End of the time window; events that begin before it count."),
        "device": (int, "Only this CUDA device."),
        "process": (int, "Only this process id."),
        "stream": (int, "Only this CUDA stream."),
    }
    return [
        make_flag(
            f"scope_{name}",
            kind if kind is bool else kind | None,
            f"--{name}",
            help=text,
            rich_help_panel="Scope",
            autocompletion=completion.make_trace_completer(name) if name in completion.NAME_FINDERS else None,
            **(_ID_SETTINGS if kind is int else {}),
        )
        for name, (kind, text) in flags.items()
    ]


def _make_output_flags() -> list[inspect.Parameter]:
    panel: dict[str, Any] = {"rich_help_panel": "Output"}
    csv_safe = "In CSV, prefix cells that look like formulas (= + - @ …) with '."
    formats = f"One of {', '.join(FORMATS)}; by default from the suffix of -o, else table."
    limit = (
        f"Show this many rows; 0 is all. Longer tables show {DEFAULT_LIMIT} by default, files and machine formats all."
    )
    return [
        make_flag("fmt", str | None, "--format", "-f", help=formats, autocompletion=complete_formats, **panel),
        make_flag("output", Path | None, "--output", "-o", help="Write to this file.", **panel),
        make_flag("limit", int | None, "--limit", "-n", help=limit, min=0, max=_MAX_ROWS, **panel),
        make_flag("wide", bool, "--wide", help="Show all columns, even in a narrow terminal.", **panel),
        make_flag(
            "columns", str | None, "--columns", help="Columns to show, in order, such as total_ns,calls.", **panel
        ),
        make_flag("full_names", bool, "--full-names", help="Show names exactly as in the trace.", **panel),
        make_flag("csv_safe", bool, "--csv-safe", help=csv_safe, **panel),
        make_flag(
            "explain", bool, "--explain", help="Print the SQL and the views it reads, without running it.", **panel
        ),
        make_flag("no_color", bool, "--no-color", help="No colors; NO_COLOR does the same.", **panel),
    ]


def _make_loading_flags() -> list[inspect.Parameter]:
    panel: dict[str, Any] = {"rich_help_panel": "Loading"}
    cache = (
        "--cache: import the trace once for faster repeat queries. --no-cache: bypass the cache. Default: use a cached "
        "copy if present."
    )
    ncu = (
        "Nsight Compute data: a file that ncu import wrote, or a CSV page or report of ncu. By default "
        "NAME.ncu.duckdb next to the trace or in this folder, if there is one."
    )
    memory = "Memory that a query may use before it spills to disk, such as 2GB; by default chosen for the machine."
    threads = "Threads that a query may use; by default one per core, up to 8."
    return [
        make_flag("cache", bool | None, "--cache/--no-cache", help=cache, **panel),
        make_flag("memory", str | None, "--memory", help=memory, **panel),
        make_flag("threads", int | None, "--threads", help=threads, min=1, max=256, **panel),
        make_flag("timeout", str | None, "--timeout", help="Stop a query that takes longer, such as 30s.", **panel),
        make_flag("ncu", Path | None, "--ncu", help=ncu, **panel),
    ]
