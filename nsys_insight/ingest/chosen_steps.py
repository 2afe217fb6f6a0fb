"""The steps that a scope chooses: all that are steady, or one by its number, with what the trace says they hold.

The facts about the steps of the trace have been found. What is in a step is in it here as there: API calls by the host
interval in which they begin, GPU operations by their launch call, and of the GPUs' time the wall.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError
from nsys_insight.sql.intervals import merged
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    import duckdb

# The facts that hold for chosen steps as they hold in the trace.
FACTS = ("steps", "step_calls", "step_kernels", "step_launches", "step_method")


def condition(table: str, time: str, pid: str) -> str:
    """Write the SQL condition that keeps the rows of a raw table which are in the steps by their time.

    Args:
        table: The table; NVTX ranges are in them as far as they reach into them.
        time: Its column for the start.
        pid: SQL for the process of a row; empty if the table has none.
    """
    if table == "GPU_METRICS":
        return f"EXISTS (FROM internal.scope_windows AS s WHERE {time} >= s.start_ns AND {time} < s.end_ns)"
    process = f" AND s.process_id = {pid}" if pid else ""
    until = '("end" IS NULL OR "end" > s.start_ns)' if table == "NVTX_EVENTS" else f"{time} >= s.start_ns"
    return f"EXISTS (FROM internal.scope_ranges AS s WHERE {time} < s.end_ns AND {until}{process})"


def choose(connection: duckdb.DuckDBPyConnection, step: int | None) -> None:
    """Write the step of this number, or all steady ones, into the tables `scope_step…` of the schema `internal`.

    Raises:
        UsageError: There is none.
    """
    chosen = "phase = 'steady'" if step is None else f"step = {step}"
    chosen = f"SELECT step FROM facts.steps WHERE step IS NOT NULL AND {chosen}"
    if not connection.execute(f"{chosen} LIMIT 1").fetchall():
        raise UsageError(*_none(connection, step))
    connection.execute("CREATE OR REPLACE TABLE internal.scope_step_method AS FROM facts.step_method")
    for name in FACTS:
        if name != "step_method":
            connection.execute(
                f"CREATE OR REPLACE TABLE internal.scope_{name} AS FROM facts.{name} WHERE step IN ({chosen})"
            )
    hosts = "(SELECT process_id, host_start_ns AS start_ns, host_end_ns AS end_ns FROM internal.scope_steps)"
    connection.execute(f"CREATE OR REPLACE TABLE internal.scope_step_time AS {merged('process_id', hosts)}")


def cut_to_them(
    connection: duckdb.DuckDBPyConnection, from_ns: int | None, to_ns: int | None
) -> tuple[int | None, int | None]:
    """Make the tables of a scope that is steps, and return from when to when their walls last, cut to a window."""
    connection.execute(
        f"""CREATE OR REPLACE TABLE internal.scope_ranges AS
                SELECT process_id, NULL::BIGINT AS thread_id, start_ns, end_ns FROM internal.scope_step_time;
            CREATE OR REPLACE TABLE internal.scope_walls AS
                SELECT greatest(start_ns, {literal(from_ns)}::BIGINT) AS start_ns,
                    least(end_ns, {literal(to_ns)}::BIGINT) AS end_ns
                FROM internal.scope_steps;
            CREATE OR REPLACE TABLE internal.scope_calls AS
                WITH calls AS (
                    SELECT pid_of(globalTid) AS process_id, correlationId AS correlation_id, start AS start_ns
                    FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME
                    WHERE correlationId IS NOT NULL AND eventClass IS DISTINCT FROM 67
                ), uncalled AS (
                    SELECT process_id, correlation_id, start_ns FROM gpu_ops
                    ANTI JOIN calls USING (process_id, correlation_id)
                )
                SELECT DISTINCT c.process_id, c.correlation_id
                FROM (FROM calls UNION ALL FROM uncalled) AS c
                ASOF JOIN internal.scope_ranges AS s ON s.process_id = c.process_id AND s.start_ns <= c.start_ns
                WHERE c.start_ns < s.end_ns"""
    )
    connection.execute(
        f"""CREATE OR REPLACE TABLE internal.scope_windows AS
            {merged("", "(FROM internal.scope_walls WHERE end_ns > start_ns)")}"""
    )
    (hull,) = connection.execute("SELECT min(start_ns), max(end_ns) FROM internal.scope_windows").fetchall()
    return hull


def _none(connection: duckdb.DuckDBPyConnection, step: int | None) -> tuple[str, str]:
    """Say that no such step was found, and what there is."""
    ((count, first, last),) = connection.execute("SELECT count(step), min(step), max(step) FROM facts.steps").fetchall()
    if not count:
        why = connection.execute("SELECT reason FROM facts.step_method WHERE reason IS NOT NULL").fetchall()
        said = f": {why[0][0]}" if why else ": nothing ran on a GPU"
        return f"no steps were found{said}", "select a part with --nvtx RANGE, or with --from and --to"
    if step is None:
        return f"none of the {count} steps is steady", "nsys-insight steps lists them; --step N is one of them"
    there = f"step {first}" if count == 1 else f"steps {first} to {last}"
    return (
        f"there is no step {step}",
        f"there {'is' if count == 1 else 'are'} {there}; nsys-insight steps lists them",
    )
