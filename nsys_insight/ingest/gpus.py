"""The GPUs of a trace: which one a process means by a device number, and the times of all of them on a single line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.ingest import extents
from nsys_insight.sql.rows import named_rows

if TYPE_CHECKING:
    import duckdb

# The macros of `create_line`.
LINE = frozenset({"lane_bits", "on_line", "gpu_on_line", "ns_on_line"})
# The tables of GPU operations.
WORK = [f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")]


def create_macro(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the macro `gpu_of`, which gives the GPU of a process's device, over the relation that says so."""
    connection.execute(f"CREATE OR REPLACE MACRO gpu_of(process_id, device_id) AS {_gpu_of(connection)}")


def create_line(connection: duckdb.DuckDBPyConnection, known: extents.Extents) -> None:
    """Create what lays GPU after GPU on one line of time, over their work, of which some tables' extents are `known`.

    What is to be sorted by GPU and time is sorted by its place `on_line` instead: one number takes half the memory of
    two. `gpu_on_line` and `ns_on_line` lead back; places of one GPU are the same after `>> lane_bits()`.
    """
    extent = extents.select(known, schema="whole", tables=WORK)
    (work,) = named_rows(connection, extent)
    # Work takes at most a quarter of its GPU's lane, the second: so what was not quite known stays within.
    known_ns = max(work.end_ns - work.start_ns, 0) if work.end_ns is not None else None
    bits = min(2 + (known_ns + 1).bit_length(), 62) if known_ns is not None else 2
    first, within = (work.start_ns or 0) - (1 << (bits - 2)), (1 << bits) - 1
    last = (1 << (63 - bits)) - 1  # the last lane, of work on no GPU that is known; higher numbers would be no BIGINT
    connection.execute(
        f"""CREATE OR REPLACE MACRO lane_bits() AS {bits};
            CREATE OR REPLACE MACRO on_line(gpu_id, ns) AS
                ((coalesce(gpu_id, {last}) & {last}) << {bits}) + (ns - ({first}));
            CREATE OR REPLACE MACRO gpu_on_line(place) AS nullif(place >> {bits}, {last});
            CREATE OR REPLACE MACRO ns_on_line(place) AS (place & {within}) + ({first})"""
    )


def _gpu_of(connection: duckdb.DuckDBPyConnection) -> str:
    """SQL for the GPU that `process_id` means by `device_id`: with the few ids as literals, as millions of rows ask it.

    Two ranks may both call their GPU device 0 (CUDA_VISIBLE_DEVICES): only newer exports say which GPU each one means.
    """
    others = named_rows(
        connection,
        """SELECT pid, cudaId AS device_id, min(gpuId) AS gpu_id FROM raw.TARGET_INFO_CUDA_DEVICE
           GROUP BY ALL HAVING min(gpuId) <> cudaId ORDER BY ALL""",
    )
    cases = " ".join(f"WHEN process_id = {row.pid} AND device_id = {row.device_id} THEN {row.gpu_id}" for row in others)
    return f"(CASE {cases} ELSE device_id END)::BIGINT" if cases else "device_id::BIGINT"
