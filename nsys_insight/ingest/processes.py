"""Processes of one trace that have the same pid: in containers, in virtual machines, on several hosts.

nsys packs the host and the virtual machine into an id, above the pid. The model knows a process by one number of 24
bits, `process_id`, which its joins use. It is the pid, except where several processes of a trace have that pid: each of
them gets a number that no process has. `--process` takes it, and answers show the pid.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError
from nsys_insight.ingest import row_search
from nsys_insight.ingest.expected_schema import read_expected_schema
from nsys_insight.ingest.source import SharedPid, Source
from nsys_insight.ingest.sqlite_file import open_read_only
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import duckdb


_LAST_NUMBER = (1 << 24) - 1  # Linux and Windows give pids from the lowest on
# A table of an export with more rows is searched in its first and last rows, and in single rows between them.
_EDGE_ROWS, _PROBES = 2_000, 200
# Messages of nsys itself have ids without a pid.
_TABLES_WITHOUT_PIDS = ("DIAGNOSTIC_EVENT",)
_NAME_TABLES = ("PROCESSES", "ThreadNames")
# Maximum number of pids that a note names.
_MAX_NAMED = 3


def number_processes(connection: duckdb.DuckDBPyConnection, sources: Sequence[Source]) -> list[Source]:
    """Return the sources with their processes that share a pid, each with its number.

    Two sources have no number in common. A pid without events needs none: a machine has a thousand such processes.
    """
    next_number, new_sources = _LAST_NUMBER, []
    for source in sources:
        shared_pids = []
        processes, idle_pids = _read_processes(connection, source)
        for pid, full_ids in sorted(processes.items()):
            for full_id in sorted(full_ids) if len(full_ids) > 1 and pid not in idle_pids else ():
                while next_number in processes:
                    next_number -= 1
                shared_pids.append(SharedPid(next_number, pid, full_id, _read_name(connection, source, full_id)))
                next_number -= 1
        new_sources.append(replace(source, shared_pids=tuple(shared_pids)))
    return new_sources


def create_macros(connection: duckdb.DuckDBPyConnection, shared_pids: Sequence[SharedPid] = ()) -> None:
    """Create the macro `pid_of`, the `process_id` of a global id, and `process_ids_of`, the list of those of a pid."""
    full_id, pid = "(global_id >> 24)", "((global_id >> 24) & 16777215)"
    numbers_by_pid: defaultdict[int, list[int]] = defaultdict(list)
    for process in shared_pids:
        numbers_by_pid[process.pid].append(process.process_id)
    numbers = " ".join(f"WHEN {process.full_id} THEN {process.process_id}" for process in shared_pids)
    lists = " ".join(f"WHEN {number} THEN {ids}::BIGINT[]" for number, ids in numbers_by_pid.items())
    process_id = f"(CASE {full_id} {numbers} ELSE {pid} END)" if numbers else pid
    process_ids = f"(CASE pid {lists} ELSE [pid] END)" if lists else "[pid]"
    connection.execute(
        f"""CREATE OR REPLACE MACRO pid_of(global_id) AS {process_id};
            CREATE OR REPLACE MACRO process_ids_of(pid) AS {process_ids}"""
    )


def refuse_shared_pid(pid: int | None, shared_pids: Iterable[SharedPid]) -> None:
    """Refuse the pid of several processes as the process of a scope.

    Raises:
        UsageError: Several processes have the pid.
    """
    candidates = [process for process in shared_pids if process.pid == pid]
    if candidates:
        numbers = ", ".join(f"--process {process.process_id} ({describe(process)})" for process in candidates)
        raise UsageError(
            f"{len(candidates)} processes of the trace have the process id {pid}", f"choose one: {numbers}"
        )


def describe_shared_pids(shared_pids: Sequence[SharedPid]) -> str:
    """Say which processes share a pid, and by which numbers they are selected; "" if none does."""
    texts = [
        f"{pid} is {' and '.join(f'{describe(process)} ({process.process_id})' for process in group)}"
        for pid, group in groupby(shared_pids, lambda process: process.pid)
    ]
    if not texts:
        return ""
    text = ", ".join(texts[:_MAX_NAMED]) + (", …" if len(texts) > _MAX_NAMED else "")
    return f"several processes have one process id: {text}; --process and conditions in SQL take the number in brackets"


def describe(process: SharedPid) -> str:
    """Return the words that tell a process from others with its pid: ``./app on host 1``."""
    host, machine = process.full_id >> 32 & 255, process.full_id >> 24 & 255
    place = f"host {host}" + (f", virtual machine {machine}" if machine else "")
    return f"{process.name} on {place}" if process.name else place


def _columns_with_ids(source: Source) -> Iterator[tuple[str, str]]:
    """Yield the tables with ids of processes or threads, and the column."""
    for table in read_expected_schema():
        for column in ("globalPid", "globalTid"):
            if column in source.columns.get(table, ()) and table not in _TABLES_WITHOUT_PIDS:
                yield table, column


def _has_several_machines(connection: duckdb.DuckDBPyConnection, source: Source) -> bool:
    """Return whether the ids of the trace name several hosts or virtual machines.

    Big tables of an export are not scanned: they are searched as `_EDGE_ROWS` describes. Each process that nsys saw
    also stands in a small table.
    """
    import sqlite3

    columns = list(_columns_with_ids(source))
    in_export = [name for name in columns if source.export and name[0] in source.export.tables]
    machines: set[int] = set()
    if source.export and in_export:
        with suppress(sqlite3.Error), open_read_only(source.export.file) as database:
            for table, column in in_export:
                name, id_test = identifier(table), f"typeof({column}) = 'integer'"
                numbers = row_search.read_row_numbers(database, table)
                # One aggregate per query would be no faster: the rows have no index.
                edges = [
                    f"(SELECT {column} FROM {name} ORDER BY rowid {order} LIMIT {_EDGE_ROWS})"
                    for order in (("", "DESC") if len(numbers) > _EDGE_ROWS else ("",))
                ]
                for rows in edges:
                    machines |= {
                        edge >> 48
                        for edge in database.execute(
                            f"SELECT min({column}), max({column}) FROM {rows} WHERE {id_test}"
                        ).fetchone()
                        if edge is not None
                    }
                probe = f"SELECT {column} >> 48 FROM {name} WHERE rowid = ? AND {id_test}"
                step = max(1, len(numbers) // _PROBES)
                for number in numbers[_EDGE_ROWS:-_EDGE_ROWS:step]:
                    machines.update(row[0] for row in database.execute(probe, (number,)))
                if len(machines) > 1:
                    return True
    selects = [
        f"SELECT min({_as_id(column)}), max({_as_id(column)}) FROM {source.relations[table]}"
        for table, column in columns
        if (table, column) not in in_export
    ]
    if selects:
        for edges_of_table in connection.execute(" UNION ALL ".join(selects)).fetchall():
            machines |= {edge >> 48 for edge in edges_of_table if edge is not None}
    return len(machines) > 1


def _read_processes(connection: duckdb.DuckDBPyConnection, source: Source) -> tuple[dict[int, set[int]], set[int]]:
    """Return the full ids of the processes of a trace by pid, and the pids without events.

    A trace of one machine is not read: its processes have different pids.
    """
    processes: defaultdict[int, set[int]] = defaultdict(set)
    pids_with_events = set()
    for table, column in _columns_with_ids(source) if _has_several_machines(connection, source) else ():
        query = f"SELECT DISTINCT {_as_id(column)} >> 24 FROM {source.relations[table]} WHERE {column} IS NOT NULL"
        for (full_id,) in connection.execute(query).fetchall():
            if full_id is not None:
                processes[full_id & _LAST_NUMBER].add(full_id)
                pids_with_events.update([] if table in _NAME_TABLES else [full_id & _LAST_NUMBER])
    return processes, processes.keys() - pids_with_events


def _read_name(connection: duckdb.DuckDBPyConnection, source: Source, full_id: int) -> str:
    """Return the name of a process without its folder; "" if it is not recorded."""
    if not {"globalPid", "name"} <= source.columns.get("PROCESSES", set()):
        return ""
    rows = connection.execute(
        f"""SELECT try_cast(name AS VARCHAR) FROM {source.relations["PROCESSES"]}
            WHERE {_as_id("globalPid")} >> 24 = {literal(full_id)} ORDER BY ALL LIMIT 1"""
    ).fetchall()
    return str(rows[0][0]).rpartition("/")[2] if rows and rows[0][0] else ""


def _as_id(column: str) -> str:
    return f"try_cast({column} AS BIGINT)"
