"""The check that a scope names a device, a process and a stream that the traces have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError
from nsys_insight.ingest.expected_schema import read_expected_schema
from nsys_insight.ingest.gpus import GPU_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import duckdb

    from nsys_insight.ingest.scope import Scope
    from nsys_insight.ingest.source import Source

_DEVICE_TABLES = (*GPU_TABLES, "TARGET_INFO_CUDA_DEVICE")  # the latter also has GPUs without work
_STREAM_TABLES = (*GPU_TABLES, "TARGET_INFO_CUDA_STREAM")
_MAX_NAMED = 8
_LAST = (1 << 31) - 1  # CUDA's numbers have 32 bits; others are of damaged rows


def refuse_missing(connection: duckdb.DuckDBPyConnection, sources: Sequence[Source], scopes: Iterable[Scope]) -> None:
    """Refuse a scope with a device, process or stream that none of the traces has.

    What is listed in a trace, but has no events, is not refused, nor is anything in a trace without any. A search ends
    at the first event that is found.

    Raises:
        UsageError: No trace has the number.
    """
    numbered_pids = {process.process_id for source in sources for process in source.shared_pids}
    for scope in scopes:
        for kind, number in (("device", scope.device), ("process", scope.process), ("stream", scope.stream)):
            if number is None or (kind == "process" and number in numbered_pids):
                continue
            columns = {kind_of_rows: [*_list_columns(sources, kind, kind_of_rows)] for kind_of_rows in ("work", "any")}
            if not any(
                connection.execute(f"SELECT 1 FROM {relation} WHERE {value} = {number} LIMIT 1").fetchall()
                for relation, value in columns["any"]
            ) and (names := _list_numbers(connection, columns["work"]) or _list_numbers(connection, columns["any"])):
                raise UsageError(f"there is no {kind} {number} in the trace", f"there {names}")


def _list_columns(sources: Iterable[Source], kind: str, kind_of_rows: str) -> Iterator[tuple[str, str]]:
    """Yield the relations with numbers of a kind, those of work on GPUs or any, and the SQL for the number."""
    if kind == "process":
        tables: Iterable[str] = (*GPU_TABLES, *read_expected_schema())
        values = {column: f"((try_cast({column} AS BIGINT) >> 24) & 16777215)" for column in ("globalPid", "globalTid")}
    else:
        tables = _DEVICE_TABLES if kind == "device" else _STREAM_TABLES
        values = {"deviceId": '"deviceId"', "cudaId": '"cudaId"'} if kind == "device" else {"streamId": '"streamId"'}
    for source in sources:
        for table in GPU_TABLES if kind_of_rows == "work" else dict.fromkeys(tables):
            for column, value in values.items():
                if column in source.columns.get(table, ()):
                    yield source.relations[table], value


def _list_numbers(connection: duckdb.DuckDBPyConnection, columns: Sequence[tuple[str, str]]) -> str:
    """Write which numbers there are: ``is 0``, ``are 0, 1``; "" without numbers."""
    if not columns:
        return ""
    union = " UNION ".join(
        f"SELECT {value} FROM {relation} WHERE {value} BETWEEN 0 AND {_LAST}" for relation, value in columns
    )
    rows = connection.execute(f"SELECT * FROM ({union}) ORDER BY ALL LIMIT {_MAX_NAMED + 1}").fetchall()
    names = [str(number) for (number,) in rows]
    if not names:
        return ""
    ellipsis = ", …" if names[_MAX_NAMED:] else ""
    return f"{'is' if len(names) == 1 else 'are'} {', '.join(names[:_MAX_NAMED])}{ellipsis}"
