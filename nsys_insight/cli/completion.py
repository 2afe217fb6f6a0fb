"""What a shell completes after Tab beside commands and flags: names of the trace, reports, views, budgets, baselines.

Whatever goes wrong, nothing is completed and nothing is said. A trace is only looked at as far as a moment allows.
"""

from __future__ import annotations

import os
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Steps are looked for in exports up to this size; in bigger ones, where they have been found before.
_SMALL = 16 * 10**6
_STEPS_S = 0.4
_BASH = "complete_bash"
# What separates words, or means something else, where a name is not quoted.
_SPECIAL = frozenset(" \t\n\"'`\\$&|;<>()[]{}*?!#~:=")


def of_trace(kind: str) -> Callable[..., list[str]]:
    """Complete names of a kind of the trace on the command line, or the one that is meant without."""

    def complete(incomplete: str) -> list[str]:
        return _completed(IN_TRACES[kind], incomplete)

    return complete


def reports(incomplete: str) -> list[str]:
    """Complete reports."""
    from nsys_insight.packs import library

    return _beginning(library.known(), incomplete)


def reports_and_views(incomplete: str) -> list[str]:
    """Complete views, and reports for the schemas of their JSON."""
    from nsys_insight.model.views import documented

    return [*_beginning(documented(internal=False), incomplete), *reports(incomplete)]


def budgets(incomplete: str) -> list[str]:
    """Complete the metric of a budget, up to its equals sign."""
    from nsys_insight.compare.budgets import ALIASES, GATES

    names = {*ALIASES, *GATES, "wall", "gpu_busy_pct", "gpu_idle_pct", "gpu_busy", "gpu_idle", "tokens_per_s"}
    return _beginning((f"{name.removesuffix('_ns')}=" for name in names), incomplete)


def baselines(incomplete: str) -> list[str]:
    """Complete the names and tags of baselines."""
    from nsys_insight.compare import baselines as kept

    try:
        saved = kept.saved()
    except Exception:  # noqa: BLE001 - whatever is wrong with a file there
        return []
    return _beginning({name for one in saved for name in (one.name, *one.about.tags)}, incomplete)


def _completed(find: Callable[[Path], Iterable[str]], incomplete: str) -> list[str]:
    try:
        trace = _trace()
        return _beginning(find(trace), incomplete) if trace else []
    except Exception:  # noqa: BLE001 - the user is typing, and did not ask what is wrong
        return []


def _trace() -> Path | None:
    """The trace that the command line names, else the one that is meant where none is named.

    It is looked for in the words that the shell has: what is typed does not parse as long as a flag has no value.
    """
    from nsys_insight.cli.trace_argument import resolve
    from nsys_insight.ingest.files import Kind
    from nsys_insight.ingest.identify import REPORT_SUFFIXES, identify
    from nsys_insight.ingest.quick_names import export_of

    words = shlex.split(os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or "")
    named = next((word for word in words if word.endswith((*REPORT_SUFFIXES, ".sqlite"))), None)
    path, _ = resolve(Path(named) if named else None)
    export = export_of(path)
    return export if export and identify(export) is Kind.SQLITE else None


def _steps(export: Path) -> list[str]:
    from nsys_insight.session.store import is_kept
    from nsys_insight.trace import Trace

    if export.stat().st_size > _SMALL and not is_kept(export):
        return []
    with Trace(export, timeout_s=_STEPS_S) as trace:
        return [str(row.step) for row in trace.rows("SELECT step FROM steps WHERE step IS NOT NULL ORDER BY step")]


def _ranges(export: Path) -> list[str]:
    from nsys_insight.ingest import quick_names

    return quick_names.ranges(export)


def _kernels(export: Path) -> list[str]:
    from nsys_insight.ingest import quick_names

    return quick_names.kernels(export)


def _numbers(column: str, export: Path) -> list[str]:
    from nsys_insight.ingest import quick_names

    return quick_names.ids(export, column)


def _phases(export: Path) -> list[str]:
    return ["prefill", "decode", "mixed", "forward", "backward", "optimizer", *_ranges(export)]


IN_TRACES: dict[str, Callable[[Path], Iterable[str]]] = {
    "nvtx": _ranges,
    "step_range": _ranges,
    "phase": _phases,
    "kernel": _kernels,
    "name": lambda export: [*_kernels(export), *_ranges(export)],
    "step": _steps,
    "device": partial(_numbers, "deviceId"),
    "stream": partial(_numbers, "streamId"),
    "process": partial(_numbers, "(globalPid >> 24) & 0xFFFFFF"),
}


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    """Those that begin with what is typed; bash takes words apart and does not quote, so it gets plain ones alone."""
    found = [name for name in dict.fromkeys(names) if name.startswith(incomplete)]
    if os.environ.get("_NSYS_INSIGHT_COMPLETE") == _BASH:
        found = [name for name in found if not _SPECIAL & set(name.removesuffix("="))]
    return found
