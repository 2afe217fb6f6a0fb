"""Shell completion of values: names in the trace, reports, views, budgets, baselines.

Errors are not reported: completion then offers nothing. Reading a trace is limited in size and time.
"""

from __future__ import annotations

import os
import re
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Largest export in which steps are searched for, in bytes. In larger ones, only stored steps are offered.
_SMALL_EXPORT_BYTES = 16 * 10**6
_STEPS_TIMEOUT_S = 0.4
# Set by the shell's function: complete_bash, complete_zsh, ...
_MODE_VARIABLE = "_NSYS_INSIGHT_COMPLETE"
# The names that a shell can be offered: names are data of strangers, and zsh runs code in what it is offered. bash and
# PowerShell insert a name without quotes, zsh quotes spaces, and fish quotes everything.
_PLAIN_NAMES = {"zsh": re.compile(r"[\w./+: -]+=?"), "fish": re.compile(r"[^\0-\x1f\x7f-\x9f\u2028\u2029]+")}
_PLAIN_NAME = re.compile(r"[\w./+-]+=?")


def make_trace_completer(kind: str) -> Callable[..., list[str]]:
    """Make the completer for one kind of name in the trace: the trace on the command line, or the default trace."""

    def complete(incomplete: str) -> list[str]:
        return _complete(NAME_FINDERS[kind], incomplete)

    return complete


def complete_reports(incomplete: str) -> list[str]:
    """Complete reports."""
    from nsys_insight.packs import library

    return _filter_by_prefix(library.all_packs(), incomplete)


def complete_reports_and_views(incomplete: str) -> list[str]:
    """Complete views, and reports for the schemas of their JSON."""
    from nsys_insight.model.views import documented_views

    return [*_filter_by_prefix(documented_views(internal=False), incomplete), *complete_reports(incomplete)]


def complete_budgets(incomplete: str) -> list[str]:
    """Complete the metric of a budget, up to its equals sign."""
    from nsys_insight.compare.budgets import ALIASES, GATES

    names = {*ALIASES, *GATES, "wall", "gpu_busy_pct", "gpu_idle_pct", "gpu_busy", "gpu_idle", "tokens_per_s"}
    return _filter_by_prefix((f"{name.removesuffix('_ns')}=" for name in names), incomplete)


def complete_baselines(incomplete: str) -> list[str]:
    """Complete the names and tags of baselines."""
    from nsys_insight.compare import baselines as baseline_store

    try:
        stored_baselines = baseline_store.list_baselines()
    except Exception:  # noqa: BLE001 - completion ignores broken baseline files
        return []
    names = {name for baseline in stored_baselines for name in (baseline.name, *baseline.info.tags)}
    return _filter_by_prefix(names, incomplete)


def _complete(find_names: Callable[[Path], Iterable[str]], incomplete: str) -> list[str]:
    try:
        trace = _find_export()
        return _filter_by_prefix(find_names(trace), incomplete) if trace else []
    except Exception:  # noqa: BLE001 - the user is typing: an error message would disturb
        return []


def _find_export() -> Path | None:
    """Find the SQLite export of the trace on the command line, or of the default trace if it names none.

    The words come from the shell's environment variables: the line does not parse while a flag has no value.
    """
    from nsys_insight.cli.trace_argument import resolve_trace_path
    from nsys_insight.ingest.completion_names import find_export
    from nsys_insight.ingest.files import Kind
    from nsys_insight.ingest.identify import REPORT_SUFFIXES, identify

    words = shlex.split(os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or "")
    trace_word = next((word for word in words if word.endswith((*REPORT_SUFFIXES, ".sqlite"))), None)
    path, _ = resolve_trace_path(Path(trace_word) if trace_word else None)
    export = find_export(path)
    return export if export and identify(export) is Kind.SQLITE else None


def _list_steps(export: Path) -> list[str]:
    from nsys_insight.session.store import is_cached
    from nsys_insight.trace import Trace

    if export.stat().st_size > _SMALL_EXPORT_BYTES and not is_cached(export):
        return []
    with Trace(export, timeout_s=_STEPS_TIMEOUT_S) as trace:
        return [str(row.step) for row in trace.rows("SELECT step FROM steps WHERE step IS NOT NULL ORDER BY step")]


def _list_ranges(export: Path) -> list[str]:
    from nsys_insight.ingest import completion_names

    return completion_names.list_range_names(export)


def _list_kernels(export: Path) -> list[str]:
    from nsys_insight.ingest import completion_names

    return completion_names.list_kernel_names(export)


def _list_ids(column: str, export: Path) -> list[str]:
    from nsys_insight.ingest import completion_names

    return completion_names.list_ids(export, column)


NAME_FINDERS: dict[str, Callable[[Path], Iterable[str]]] = {
    "nvtx": _list_ranges,
    "step_range": _list_ranges,
    "phase": lambda export: ["prefill", "decode", "mixed", "forward", "backward", "optimizer", *_list_ranges(export)],
    "kernel": _list_kernels,
    "name": lambda export: [*_list_kernels(export), *_list_ranges(export)],
    "step": _list_steps,
    "device": partial(_list_ids, "deviceId"),
    "stream": partial(_list_ids, "streamId"),
    "process": partial(_list_ids, "(globalPid >> 24) & 0xFFFFFF"),
}


def plain_summary(text: str) -> str:
    """Return a user pack's title for the help, and for shells that show it with the name: zsh evaluates it."""
    return re.sub(r"[^\w ,./+-]", "", text) if _MODE_VARIABLE in os.environ else text


def _filter_by_prefix(candidates: Iterable[str], incomplete: str) -> list[str]:
    """Return the names that begin with the typed text and that the shell reads as a name."""
    matches = [name for name in dict.fromkeys(candidates) if name.startswith(incomplete)]
    if not (shell := os.environ.get(_MODE_VARIABLE, "").partition("_")[2]):
        return matches
    return [name for name in matches if _PLAIN_NAMES.get(shell, _PLAIN_NAME).fullmatch(name)]
