"""The GPUs of a trace: the GPU behind a device number, and the times of all GPUs on one concatenated timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.ingest import time_bounds
from nsys_insight.sql.rows import fetch_rows

if TYPE_CHECKING:
    import duckdb

# The macros of `create_timeline_macros`.
TIMELINE_MACROS = frozenset({"lane_bits", "on_line", "gpu_on_line", "ns_on_line"})
# The tables with GPU operations.
GPU_TABLES = [f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")]


def create_gpu_macro(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the macro `gpu_of`, which returns the GPU of a process's device number."""
    connection.execute(f"CREATE OR REPLACE MACRO gpu_of(process_id, device_id) AS {_write_gpu_case(connection)}")


def create_timeline_macros(connection: duckdb.DuckDBPyConnection, known_bounds: time_bounds.TimeBounds) -> None:
    """Create the macros that place the GPUs one after the other on a concatenated timeline.

    `on_line` returns the position of a time on it. Queries sort by this position instead of by GPU and time: one number
    takes half the memory of two. `gpu_on_line` and `ns_on_line` are the inverse. Positions of one GPU are equal after
    `>> lane_bits()`. `known_bounds` are the time bounds of tables that need no query.
    """
    bounds_query = time_bounds.select_time_bounds(known_bounds, schema="unscoped", tables=GPU_TABLES)
    (work,) = fetch_rows(connection, bounds_query)
    # The work takes at most a quarter of its GPU's track, the second one. So work outside the known bounds still fits.
    duration_ns = max(work.end_ns - work.start_ns, 0) if work.end_ns is not None else None
    bits = min(2 + (duration_ns + 1).bit_length(), 62) if duration_ns is not None else 2
    origin_ns, position_mask = (work.start_ns or 0) - (1 << (bits - 2)), (1 << bits) - 1
    last_track = (1 << (63 - bits)) - 1  # for work on an unknown GPU; higher numbers do not fit into BIGINT
    connection.execute(
        f"""CREATE OR REPLACE MACRO lane_bits() AS {bits};
            CREATE OR REPLACE MACRO on_line(gpu_id, ns) AS
                ((coalesce(gpu_id, {last_track}) & {last_track}) << {bits}) + (ns - ({origin_ns}));
            CREATE OR REPLACE MACRO gpu_on_line(axis_position) AS nullif(axis_position >> {bits}, {last_track});
            CREATE OR REPLACE MACRO ns_on_line(axis_position) AS
                (axis_position & {position_mask}) + ({origin_ns})"""
    )


def _write_gpu_case(connection: duckdb.DuckDBPyConnection) -> str:
    """Write the SQL for the GPU of a process's device number, with the few ids as literals: millions of rows need it.

    Two ranks may both call their GPU device 0 (CUDA_VISIBLE_DEVICES). Only newer exports record which GPU each one
    means.
    """
    renumbered_devices = fetch_rows(
        connection,
        """SELECT unnest(process_ids_of(pid)) AS process_id, cudaId AS device_id, min(gpuId) AS gpu_id
           FROM raw.TARGET_INFO_CUDA_DEVICE GROUP BY pid, cudaId HAVING min(gpuId) <> cudaId ORDER BY ALL""",
    )
    cases = " ".join(
        f"WHEN process_id = {row.process_id} AND device_id = {row.device_id} THEN {row.gpu_id}"
        for row in renumbered_devices
    )
    return f"(CASE {cases} ELSE device_id END)::BIGINT" if cases else "device_id::BIGINT"
