"""The flags of a report's command: the pack's own from its header, then those of every report."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight.render import FORMATS
from nsys_insight.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nsys_insight.packs import Param

DEFAULT_LIMIT = 20
_ID = {"min": 0, "max": 2**63 - 1}

TraceArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[TRACE]",
        help="A .nsys-rep, .qdrep or .sqlite file, or a parquetdir. Left out: $NSYS_INSIGHT_TRACE, else the only trace"
        " in this folder, else the one used last here.",
        show_default=False,
    ),
]


def with_flags(
    run: Callable[..., None], text: str, *own: inspect.Parameter, argument: inspect.Parameter | None = None
) -> Callable[..., None]:
    """Give a function of (trace, **given) its help, its argument, its own flags, and those of every report.

    Flags of its own take their short names from those of every report: the ``-f`` of ``sql`` is a file.
    """
    trace = inspect.Parameter("trace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=TraceArgument)
    shared = [*_scope(), *_output(), *_loading()]
    taken = {name for parameter in own for name in _option(parameter).param_decls or () if len(name) == 2}
    for parameter in shared:
        option = _option(parameter)
        option.param_decls = tuple(name for name in option.param_decls or () if name not in taken)
    run.__signature__ = inspect.Signature([argument or trace, *own, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {}
    run.__doc__ = text
    return run


def without(run: Callable[..., None], *names: str, trace: Any = None) -> Callable[..., None]:
    """Leave flags out of a command, and say something else of its first argument."""

    def changed(parameters: Iterable[inspect.Parameter]) -> Iterable[inspect.Parameter]:
        for parameter in parameters:
            if parameter.name == "trace" and trace is not None:
                yield parameter.replace(annotation=Annotated[Path | None, trace])
            elif parameter.name not in names:
                yield parameter

    run.__signature__ = inspect.Signature(list(changed(run.__signature__.parameters.values())))  # type: ignore[attr-defined]
    return run


def flag_of(param: Param) -> inspect.Parameter:
    """The flag of a pack's parameter."""
    kind = str if param.has_unit else param.kind
    text = param.help + (f" [{'|'.join(param.choices)}]" if param.choices else "")
    names = f"{param.flag}/--no-{param.flag[2:]}" if kind is bool else param.flag
    default = None if param.default is None else kind(param.default)
    option = typer.Option(
        names,
        help=text,
        show_default=default is not None,
        autocompletion=(lambda: list(param.choices)) if param.choices else None,
    )
    return _keyword(param.name, kind | None, default, option)


def scope_of(given: dict[str, Any]) -> Scope:
    """Read the scope flags.

    Raises:
        UsageError: A time is none, or the window is empty.
    """
    return Scope(
        nvtx=given["scope_nvtx"],
        from_ns=_time(given["scope_from"]),
        to_ns=_time(given["scope_to"]),
        device=given["scope_device"],
        process=given["scope_process"],
        stream=given["scope_stream"],
    )


def timeout_of(given: dict[str, Any]) -> float | None:
    """Read --timeout as seconds; None is no limit.

    Raises:
        UsageError: It is no duration.
    """
    from nsys_insight.units import parse_duration

    text = given["timeout"]
    return None if text is None else parse_duration(f"{text}s" if text.isdecimal() else text, flag="--timeout") / 1e9


def _time(text: str | None) -> int | None:
    from nsys_insight.units import parse_duration

    if text is None:
        return None
    # A trace's time may be negative: what happened before the capture range began.
    return -parse_duration(text[1:]) if text.startswith("-") else parse_duration(text)


def _option(parameter: inspect.Parameter) -> Any:
    return parameter.annotation.__metadata__[0]


def _scope() -> list[inspect.Parameter]:
    flags = {
        "nvtx": (str, "Only what was launched inside NVTX ranges of this name (* and ? match anything)."),
        "from": (str, "Only events that begin at or after this time of the trace: 120ms, or plain ns."),
        "to": (str, "Only events that begin before this time of the trace."),
        "device": (int, "Only this CUDA device."),
        "process": (int, "Only this process id."),
        "stream": (int, "Only this CUDA stream."),
    }
    return [
        _flag(
            f"scope_{name}",
            kind | None,
            f"--{name}",
            help=text,
            rich_help_panel="Scope",
            **(_ID if kind is int else {}),
        )
        for name, (kind, text) in flags.items()
    ]


def _output() -> list[inspect.Parameter]:
    panel: dict[str, Any] = {"rich_help_panel": "Output"}
    formats = f"One of {', '.join(FORMATS)}; by default what the suffix of -o says, else table."
    limit = f"Show this many rows; 0 is all. Tables show {DEFAULT_LIMIT} by default, files and machine formats all."
    return [
        _flag("fmt", str | None, "--format", "-f", help=formats, autocompletion=lambda: list(FORMATS), **panel),
        _flag("output", Path | None, "--output", "-o", help="Write to this file.", **panel),
        _flag("limit", int | None, "--limit", "-n", help=limit, min=0, **panel),
        _flag("full_names", bool, "--full-names", help="Show names exactly as the trace has them.", **panel),
        _flag("explain", bool, "--explain", help="Print the SQL and the views it reads, and do not run it.", **panel),
        _flag("no_color", bool, "--no-color", help="No colours; NO_COLOR says the same.", **panel),
    ]


def _loading() -> list[inspect.Parameter]:
    panel: dict[str, Any] = {"rich_help_panel": "Loading"}
    cache = (
        "Build a DuckDB copy in the cache folder first (for many questions about a big trace), or do not use one; by"
        " default one is used where there is one."
    )
    ncu = (
        "What Nsight Compute measured: a file that ncu import wrote, or a CSV page or report of ncu. Left out:"
        " NAME.ncu.duckdb beside the trace or here, where there is one."
    )
    memory = "What a query may hold in memory before it spills to disk, such as 2GB."
    return [
        _flag("cache", bool | None, "--cache/--no-cache", help=cache, **panel),
        _flag("memory", str | None, "--memory", help=memory, **panel),
        _flag("timeout", str | None, "--timeout", help="Stop a query that takes longer, such as 30s.", **panel),
        _flag("ncu", Path | None, "--ncu", help=ncu, **panel),
    ]


def _flag(name: str, kind: Any, *names: str, **option: Any) -> inspect.Parameter:
    default = False if kind is bool else None
    return _keyword(name, kind, default, typer.Option(*names, show_default=False, **option))


def _keyword(name: str, kind: Any, default: object, option: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
