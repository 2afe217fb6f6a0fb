"""Write the rows of a synthetic trace into a SQLite file, with the schema of one nsys version."""

from __future__ import annotations

import random
import re
import sqlite3
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING

from synthetic_schema import (
    ENUM_OF,
    ENUMS,
    H200,
    MACHINE,
    NONE,
    STRING_COLUMNS,
    TABLES,
    TIME_COLUMNS,
    VERSIONS,
    Column,
    Version,
    columns,
    primary_key,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from synthetic import Row, Text, Trace

Tables = defaultdict[str, list["Row"]]

_ENCODED_COLUMNS = frozenset({*STRING_COLUMNS, *ENUM_OF, "syncType"})
NVTX_DOMAIN = 75  # the NVTX event type that names a domain


def write(
    trace: Trace,
    path: Path,
    version: str = "2025.3",
    *,
    shuffle: int | None = None,
    lazy: bool = True,
    without_tables: Collection[str] = (),
    without_columns: Collection[str] = (),
    renamed_tables: Mapping[str, str] | None = None,
    enums: Mapping[str, Mapping[int, str]] | None = None,
) -> Path:
    """Write `trace` to `path`. The same trace gives the same bytes.

    Args:
        trace: What to write.
        path: The file; an existing one is replaced.
        version: The version of nsys, a key of `VERSIONS`.
        shuffle: Seed of another order of the rows in each table, and of other string ids.
        lazy: Make a table only when it has rows, as nsys does by default.
        without_tables: Tables to leave out.
        without_columns: Columns to leave out, as `TABLE.column`, or `column` for every table.
        renamed_tables: Other names for tables, such as nsys's own misspelling of an enum table.
        enums: Other numberings, by the name of the enum's table; rows follow them.

    Returns:
        `path`.

    Raises:
        ValueError: This version of nsys has no table for some rows; name the table in `without_tables` to drop them.
    """
    kind = VERSIONS[version]
    numbering = {**ENUMS, **(enums or {})}
    tables = _add_descriptions(trace, kind)
    missing_tables = {name for name, rows in tables.items() if rows and not columns(name, version)} - set(
        without_tables
    )
    if missing_tables:
        raise ValueError(f"nsys {version} has no {', '.join(sorted(missing_tables))}")
    if kind.has_backtraces:
        tables["CUPTI_ACTIVITY_KIND_RUNTIME"] = _add_backtraces(tables["CUPTI_ACTIVITY_KIND_RUNTIME"])
    order = None if shuffle is None else random.Random(shuffle)  # noqa: S311 - not for secrets
    tables = _encode(tables, numbering, kind.sync_types, order)
    for name, labels in numbering.items():
        tables[name] = [{"id": key, "name": label.upper(), "label": label} for key, label in labels.items()]

    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
    names = {**kind.renamed, **(renamed_tables or {})}
    for name in [*TABLES, *ENUMS]:
        file_columns = [c for c in columns(name, version) if not {c.name, f"{name}.{c.name}"} & set(without_columns)]
        rows = tables[name]
        if file_columns and name not in without_tables and (rows or not lazy):
            if order is not None:
                order.shuffle(rows)
            _insert(db, names.get(name, name), file_columns, rows)
    db.commit()
    db.close()
    return path


def extent(tables: Mapping[str, list[Row]]) -> tuple[int, int]:
    """Return the first and last time in a trace; 0 and 0 without any."""
    all_rows = [row for rows in tables.values() for row in rows]
    times = [row[name] for row in all_rows for name in TIME_COLUMNS & row.keys() if row[name] is not None]
    return min(times, default=0), max(times, default=0)


def _add_descriptions(trace: Trace, kind: Version) -> Tables:
    """Return the tables with the rows that describe the machine, the processes, the capture and the export."""
    tables: Tables = defaultdict(list, {name: [dict(row) for row in rows] for name, rows in trace.rows.items()})
    used_streams = {
        (row["globalPid"] >> 24 & 0xFFFFFF, row["deviceId"], row["streamId"])
        for rows in trace.rows.values()
        for row in rows
        if row.get("globalPid") is not None and row.get("deviceId") is not None and row.get("streamId") is not None
    }
    gpu_of = {}
    for pid, device, stream in sorted(used_streams):
        visible = trace.visible_gpus.get(pid, ())
        gpu_of[pid, device] = visible[device] if device < len(visible) else device
        if stream != NONE:
            flag = "Null stream" if stream == 7 else "Default stream"
            tables["TARGET_INFO_CUDA_STREAM"].append(
                {"streamId": stream, "vmId": 1, "processId": pid, "contextId": device + 1, "flag": flag}
            )
    described_gpus = {row["id"] for row in tables["TARGET_INFO_GPU"]}
    for gpu in sorted(set(gpu_of.values()) - described_gpus):
        tables["TARGET_INFO_GPU"].append({**H200, "id": gpu, "cuDevice": gpu, "pwGpuId": gpu})
    for (pid, device), gpu in gpu_of.items():
        context = {"nullStreamId": 7, "vmId": 1, "processId": pid, "deviceId": device, "contextId": device + 1}
        if kind.has("TARGET_INFO_CUDA_CONTEXT_INFO"):
            tables["TARGET_INFO_CUDA_CONTEXT_INFO"].append({**context, "isGreenContext": 0})
        if kind.has("TARGET_INFO_CUDA_DEVICE"):
            tables["TARGET_INFO_CUDA_DEVICE"].append({"gpuId": gpu, "cudaId": device, "pid": pid})
    for pid, name in trace.processes.items():
        tables["PROCESSES"].append({"globalPid": MACHINE | pid << 24, "pid": pid, "name": name})
    first, last = extent(trace.rows)
    # A range that ends with the capture was still open.
    last += 1
    capture = {"startTime": 333_809_592, "stopTime": 333_809_592 + last, "duration": last - min(first, 0)}
    tables["ANALYSIS_DETAILS"].append({"globalVid": MACHINE, **capture})
    clock = "2026-01-02T03:04:05"
    tables["TARGET_INFO_SESSION_START_TIME"].append(
        {"utcEpochNs": trace.start_epoch_ns, "utcTime": clock, "localTime": clock}
    )
    driver = {"name": "NvDriverVersion", "nameEnum": 205, "value": "580.159.04"}
    tables["TARGET_INFO_SYSTEM_ENV"].append({"globalVid": MACHINE, "devStateName": "Local (CLI)", **driver})
    if kind.has("META_DATA_CAPTURE"):
        in_nodes = any(row.get("graphNodeId") is not None for row in tables["CUPTI_ACTIVITY_KIND_KERNEL"])
        settings = {
            "PROCESS_0:COMMAND": next(iter(trace.processes.values()), "./app"),
            "PROCESS_0:ENVIRONMENT_VARIABLE": f'API_TOKEN="{trace.SECRET}"',
            "PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE": "Node" if in_nodes else "Graph",
        }
        tables["META_DATA_CAPTURE"] += [{"name": key, "value": value} for key, value in settings.items()]
        tables["META_DATA_CAPTURE"] += [
            {"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": f'{key}="{value}"'}
            for key, value in trace.environment.items()
        ]
    major, minor, micro = kind.schema.split(".")
    export = {
        "EXPORT_PRODUCT_NAME": "NVIDIA Nsight Systems",
        "EXPORT_PRODUCT_VERSION": kind.product,
        "EXPORT_SCHEMA_VERSION": kind.schema,
        "EXPORT_SCHEMA_VERSION_MAJOR": major,
        "EXPORT_SCHEMA_VERSION_MINOR": minor,
        "EXPORT_SCHEMA_VERSION_MICRO": micro,
    }
    tables["META_DATA_EXPORT"] += [{"name": key, "value": value} for key, value in export.items()]
    return tables


def _add_backtraces(calls: list[Row]) -> list[Row]:
    """Add the row of nsys 2022 around each runtime call."""
    rows = []
    for number, api_call in enumerate(calls):
        call = api_call
        if call["eventClass"] == 0:
            name = re.sub(r"_v\d+$", "", call["nameId"]) if isinstance(call["nameId"], str) else call["nameId"]
            times = {"start": call["start"] - 1, "end": call["end"] + 1}
            chain = call.get("callchainId")
            rows.append(
                {
                    **call,
                    **times,
                    "eventClass": 67,
                    "nameId": name,
                    "callchainId": 10**6 + number if chain is None else chain,
                }
            )
            call = {**call, "callchainId": None}
        rows.append(call)
    return rows


def _encode(
    tables: Tables,
    numbering: Mapping[str, Mapping[int, str]],
    sync_types: Mapping[str, int],
    order: random.Random | None,
) -> Tables:
    """Replace strings and labels by ids, and write the table of strings."""
    numbers = {enum: {label: key for key, label in labels.items()} for enum, labels in numbering.items()}
    numbers_by_column = {name: numbers[enum] for name, enum in ENUM_OF.items()} | {"syncType": sync_types}
    texts: dict[Text, int] = {"": 0}
    all_rows = [row for rows in tables.values() for row in rows]
    for row in all_rows:
        for name in _find_columns(tuple(row), STRING_COLUMNS):
            if isinstance(row[name], str | bytes):
                texts.setdefault(row[name], len(texts))
    if order is not None:
        texts = dict(zip(texts, order.sample(range(10, 10 + 2 * len(texts)), len(texts)), strict=True))
    for row in all_rows:
        for name in _find_columns(tuple(row), _ENCODED_COLUMNS):
            value = row[name]
            if isinstance(value, str | bytes) and name in STRING_COLUMNS:
                row[name] = texts[value]
            elif isinstance(value, str):
                row[name] = numbers_by_column[name][value]
    tables["StringIds"] += [{"id": key, "value": text} for text, key in texts.items()]
    return tables


@cache
def _find_columns(names: tuple[str, ...], columns_to_find: frozenset[str]) -> list[str]:
    """List those of the columns that a row has, sorted. Most rows of a table have the same columns."""
    return sorted(columns_to_find & set(names))


def _insert(db: sqlite3.Connection, table: str, table_columns: list[Column], rows: list[Row]) -> None:
    db.execute(
        f'CREATE TABLE "{table}" ({", ".join(column.ddl for column in table_columns)}{primary_key(table_columns)})'
    )
    # The cast keeps bytes that are not UTF-8 in a TEXT value, as nsys leaves them.
    placeholders = ", ".join("CAST(? AS TEXT)" if column.type == "TEXT" else "?" for column in table_columns)
    # By column, what it holds in a row that does not have it.
    defaults = [
        (column.name, ("" if column.type == "TEXT" else 0) if column.required else None) for column in table_columns
    ]
    values = [[row.get(name, default) for name, default in defaults] for row in rows]
    db.executemany(f'INSERT INTO "{table}" VALUES ({placeholders})', values)
