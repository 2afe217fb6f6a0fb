"""Shell completion of values: names in the trace, reports, views, budgets, baselines.

Errors are not reported: completion then offers nothing. Reading a trace is limited in size and time.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Largest export in which steps are searched for, in bytes. In larger ones, only stored steps are offered.
_SMALL_EXPORT_BYTES = 16 * 10**6
_STEPS_TIMEOUT_S = 0.4
# Reading stops after this time, and returns the names found so far.
_READING_TIMEOUT_S = 0.2
_MAX_ROWS = 500
_CHECK_INTERVAL = 5_000  # the time is checked after this many instructions of SQLite's virtual machine
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
    from nsys_insight import cache_folder
    from nsys_insight.cli.trace_argument import resolve_trace_path
    from nsys_insight.ingest import private
    from nsys_insight.ingest.files import Kind, find_neighbor
    from nsys_insight.ingest.identify import REPORT_SUFFIXES, identify

    words = shlex.split(os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or "")
    trace_word = next((word for word in words if word.endswith((*REPORT_SUFFIXES, ".sqlite"))), None)
    trace, _ = resolve_trace_path(Path(trace_word) if trace_word else None)
    export: Path | None = trace
    if trace.suffix in REPORT_SUFFIXES:  # its export is next to it, or in the cache
        export = find_neighbor(trace, trace.with_suffix(".sqlite").name)
        if not export or export.stat().st_mtime < trace.stat().st_mtime:
            cache_key = cache_folder.key(trace, private.CACHE_KEY_PART)
            export = max(cache_folder.location().glob(f"{cache_key}-*.sqlite"), default=None)
    return export if export and identify(export) is Kind.SQLITE else None


def _list_steps(export: Path) -> list[str]:
    from nsys_insight.session.store import is_cached
    from nsys_insight.trace import Trace

    if export.stat().st_size > _SMALL_EXPORT_BYTES and not is_cached(export):
        return []
    with Trace(export, timeout_s=_STEPS_TIMEOUT_S) as trace:
        return [str(row.step) for row in trace.rows("SELECT step FROM steps WHERE step IS NOT NULL ORDER BY step")]


def _list_ranges(export: Path) -> list[str]:
    columns = _list_columns(export, "NVTX_EVENTS")
    text_column, id_column = (name if name in columns else "NULL" for name in ("text", "textId"))
    return _read_names(
        export, f"SELECT DISTINCT {text_column}, {id_column} FROM NVTX_EVENTS WHERE eventType IN (59, 60, 70, 71)"
    )


def _list_kernels(export: Path) -> list[str]:
    return _read_names(export, "SELECT DISTINCT NULL, shortName FROM CUPTI_ACTIVITY_KIND_KERNEL")


def _list_ids(column: str, export: Path) -> list[str]:
    """List the numbers that kernels have in a column."""
    return [
        str(number)
        for number, _ in _read_rows(export, f"SELECT DISTINCT {column}, NULL FROM CUPTI_ACTIVITY_KIND_KERNEL")
    ]


def _read_names(export: Path, query: str) -> list[str]:
    texts_and_ids = _read_rows(export, query)
    string_ids = ", ".join(str(int(number)) for text, number in texts_and_ids if text is None and number is not None)
    texts = (
        dict(_read_rows(export, f"SELECT id, value FROM StringIds WHERE id IN ({string_ids})")) if string_ids else {}
    )
    names = (texts.get(number) if text is None else text for text, number in texts_and_ids)
    return sorted({name for name in names if isinstance(name, str) and name})


def _list_columns(export: Path, table: str) -> set[str]:
    return {name for name, _ in _read_rows(export, f"SELECT name, NULL FROM pragma_table_info('{table}')")}


def _read_rows(export: Path, query: str) -> list[tuple[Any, Any]]:
    """Read at most `_MAX_ROWS` rows of the file, as far as the time allows."""
    import sqlite3

    from nsys_insight.ingest.sqlite_file import open_read_only

    rows: list[tuple[Any, Any]] = []
    deadline_s = time.monotonic() + _READING_TIMEOUT_S
    with suppress(sqlite3.Error), open_read_only(export) as connection:
        connection.set_progress_handler(lambda: time.monotonic() > deadline_s, _CHECK_INTERVAL)
        for row in islice(connection.execute(query), _MAX_ROWS):
            rows.append(row)  # noqa: PERF402 - an error keeps the rows before it
    return rows


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
