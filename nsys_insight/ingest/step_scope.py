"""The steps of a scope: all steady ones, or one by its number, and the facts about them.

The facts about the steps of the trace already exist. Events belong to a step by the same rules as there: API calls by
the host interval in which they start, GPU operations by their launch call, and the time of the GPUs by the step time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    import duckdb

# The facts about steps that are copied for the selected steps.
STEP_FACTS = ("steps", "step_calls", "step_kernels", "step_launches", "step_method")


def write_condition(table: str, time: str, pid: str) -> str:
    """Write the SQL condition for the rows of a raw table that are in the steps.

    Args:
        table: The table. NVTX ranges are cut to the steps.
        time: The column with the start.
        pid: SQL for the process of a row; empty if the table has none.
    """
    if table == "GPU_METRICS":
        return f"EXISTS (FROM internal.scope_windows AS s WHERE {time} >= s.start_ns AND {time} < s.end_ns)"
    process = f" AND s.process_id = {pid}" if pid else ""
    end_test = '("end" IS NULL OR "end" > s.start_ns)' if table == "NVTX_EVENTS" else f"{time} >= s.start_ns"
    return f"EXISTS (FROM internal.scope_ranges AS s WHERE {time} < s.end_ns AND {end_test}{process})"


def select_steps(connection: duckdb.DuckDBPyConnection, step: int | None) -> None:
    """Copy one step by its number, or all steady steps, to the tables `scope_step…` of the schema `internal`.

    Raises:
        UsageError: There is no such step.
    """
    step_test = "phase = 'steady'" if step is None else f"step = {step}"
    steps_query = f"SELECT step FROM facts.steps WHERE step IS NOT NULL AND {step_test}"
    if not connection.execute(f"{steps_query} LIMIT 1").fetchall():
        raise UsageError(*_explain_missing_step(connection, step))
    connection.execute("CREATE OR REPLACE TABLE internal.scope_step_method AS FROM facts.step_method")
    for name in STEP_FACTS:
        if name != "step_method":
            connection.execute(
                f"CREATE OR REPLACE TABLE internal.scope_{name} AS FROM facts.{name} WHERE step IN ({steps_query})"
            )
    connection.execute(
        """CREATE OR REPLACE TABLE internal.scope_step_time AS
               WITH ranges AS (
                   SELECT process_id AS group_id, NULL AS thread, host_start_ns AS start_ns, host_end_ns AS close_ns
                   FROM internal.scope_steps
               )
               SELECT group_id AS process_id, start_ns, close_ns AS end_ns FROM _stretches_of('ranges')"""
    )


def create_step_tables(
    connection: duckdb.DuckDBPyConnection, from_ns: int | None, to_ns: int | None
) -> tuple[int | None, int | None]:
    """Create the tables of a scope of steps; return the start and end of their step times, cut to a window."""
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
                ), operations_without_call AS (
                    SELECT process_id, correlation_id, start_ns FROM gpu_ops
                    ANTI JOIN calls USING (process_id, correlation_id)
                )
                SELECT DISTINCT c.process_id, c.correlation_id
                FROM (FROM calls UNION ALL FROM operations_without_call) AS c
                ASOF JOIN internal.scope_ranges AS s ON s.process_id = c.process_id AND s.start_ns <= c.start_ns
                WHERE c.start_ns < s.end_ns"""
    )
    connection.execute(
        """CREATE OR REPLACE TABLE internal.scope_windows AS
               WITH ranges AS (
                   SELECT NULL AS group_id, NULL AS thread, start_ns, end_ns AS close_ns
                   FROM internal.scope_walls WHERE end_ns > start_ns
               )
               SELECT start_ns, close_ns AS end_ns FROM _stretches_of('ranges')"""
    )
    (time_bounds,) = connection.execute("SELECT min(start_ns), max(end_ns) FROM internal.scope_windows").fetchall()
    return time_bounds


def _explain_missing_step(connection: duckdb.DuckDBPyConnection, step: int | None) -> tuple[str, str]:
    """Return an error text and a hint: there is no such step, and which steps there are."""
    ((count, first, last),) = connection.execute("SELECT count(step), min(step), max(step) FROM facts.steps").fetchall()
    if not count:
        reasons = connection.execute("SELECT reason FROM facts.step_method WHERE reason IS NOT NULL").fetchall()
        reason = f": {reasons[0][0]}" if reasons else ": nothing ran on a GPU"
        return f"no steps were found{reason}", "select a part with --nvtx RANGE, or with --from and --to"
    if step is None:
        return f"none of the {count} steps is steady", "nsys-insight steps lists them; --step N is one of them"
    step_numbers = f"step {first}" if count == 1 else f"steps {first} to {last}"
    return (
        f"there is no step {step}",
        f"there {'is' if count == 1 else 'are'} {step_numbers}; nsys-insight steps lists them",
    )
