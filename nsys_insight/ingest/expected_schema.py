"""The expected schema: the tables and columns of an export that the model reads, with their types, and their words."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from nsys_insight.paths import read_query
from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    from collections.abc import Mapping


_NUMBERS, _TEXTS = ("INT", "REAL", "FLOA", "DOUB"), ("TEXT", "CHAR", "CLOB")
# Words of SQLite's declarations, by expected type.
_DECLARATIONS = {"BIGINT": _NUMBERS, "DOUBLE": _NUMBERS, "VARCHAR": _TEXTS, "BLOB": (*_TEXTS, "BLOB")}

# What sentences call the rows of a table.
_ROWS = {
    "StringIds": "names",
    "CUPTI_ACTIVITY_KIND_KERNEL": "kernels",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "API calls",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "copies",
    "CUPTI_ACTIVITY_KIND_MEMSET": "memsets",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "graph launches",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "synchronizations",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "memory events",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": "CPU page faults",
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": "GPU page faults",
    "NVTX_EVENTS": "NVTX ranges",
    "GPU_METRICS": "GPU metrics",
    "OSRT_API": "operating system calls",
    "MPI_P2P_EVENTS": "MPI messages",
    "MPI_COLLECTIVES_EVENTS": "MPI collectives",
    "PROFILER_OVERHEAD": "profiler overhead",
    "DIAGNOSTIC_EVENT": "messages of nsys",
}


@cache
def read_expected_schema() -> dict[str, dict[str, str]]:
    """Return the columns of each table that the model reads, with their DuckDB types, from `queries/model/raw.sql`."""
    text = re.sub(r"--[^\n]*", "", read_query("model/raw"))
    return {
        table: {name.strip('"'): kind for name, kind in (column.split() for column in body.split(","))}
        for table, body in re.findall(r"CREATE TABLE (\w+) \(([^)]*)\)", text)
    }


def has_expected_types(declared_types: Mapping[str, Mapping[str, str]]) -> bool:
    """Return whether SQLite's columns are declared with types that DuckDB's extension reads as the expected ones."""
    return all(
        any(word in declared_types[table][name].upper() for word in _DECLARATIONS[kind])
        for table, types in read_expected_schema().items()
        for name, kind in types.items()
        if name in declared_types.get(table, {})
    )


def cast_column(name: str, kind: str, expression: str = "") -> str:
    """Write the SQL that casts a column of a trace to the type of the expected schema.

    SQLite does not check that text is UTF-8, but DuckDB relies on it. Invalid bytes are written in hexadecimal. Bytes
    in a BLOB column stay unchanged.
    """
    column = identifier(name)
    value = f"{expression or column}::{kind}"
    if kind == "VARCHAR":
        value = f"coalesce(try(decode(encode({value}))), encode({value})::VARCHAR)"
    elif kind == "BLOB":  # nsys declares these columns as TEXT
        source = expression or column
        value = f"CASE WHEN typeof({source}) = 'BLOB' THEN {source}::BLOB ELSE encode({source}::VARCHAR) END"
    return f"{value} AS {column}"


def name_rows(table: str) -> str:
    """Return the word for the rows of a table, such as kernels."""
    return _ROWS.get(table, f"rows of {table}")
