"""The part of a trace that a report is about: NVTX ranges, a phase, steps, a time window, a device, and so on."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError
from nsys_insight.ingest import step_scope, time_bounds
from nsys_insight.sql.quoting import identifier, literal
from nsys_insight.sql.rows import fetch_rows
from nsys_insight.text.suggestions import did_you_mean, quote_name
from nsys_insight.text.units import exact_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

# Tables with names, or about the capture itself: no scope narrows them.
UNSCOPED_PREFIXES = (
    "TARGET_",
    "ENUM_",
    "META_",
    "EXPORT_",
    "ANALYSIS_",
    "StringIds",
    "PROCESSES",
    "ThreadNames",
    "DIAGNOSTIC_",
)
# The number of names in the path of an NVTX range. For all ranges below, it has one …. Without a limit, the text of all
# paths grows with the square of the depth: terabytes for a million calls of a function that calls itself.
LAST_NAMED_DEPTH = 64


@dataclass(frozen=True)
class Scope:
    """The filters of a report; None does not filter.

    An event is in a time window if it starts there (`from_ns` included, `to_ns` not), so that the windows of a
    partition add up. An NVTX range is cut to the window. A GPU operation is in an NVTX range if its launch call started
    inside the range, on its thread; busy and idle time are those during the range. `nvtx` is the name of a range, or
    its path such as ``decode_step/layer_0``; `*` and `?` are wildcards, and `#` also stands for any number. `phase` is
    a phase that NVTX ranges name in any form (prefill, decode, mixed, forward …) and selects all of its steps. If no
    phase has this name, it is the name of a range.

    `steady` and `step` select steps of the view `steps`: all of the phase steady, or a single one by its number. As in
    the view, API calls are in a step if they start in its host interval, GPU operations by their launch call, and the
    time of the scope is the step times. The steps are detected in the process and device of the scope.
    """

    nvtx: str | None = None
    phase: str | None = None
    steady: bool | None = None
    step: int | None = None
    from_ns: int | None = None
    to_ns: int | None = None
    device: int | None = None
    process: int | None = None
    stream: int | None = None

    def __post_init__(self) -> None:
        """Reject an empty window, two names of ranges, and two selections of steps."""
        if self.nvtx is not None and self.phase is not None:
            raise UsageError("--nvtx and --phase both name ranges", "give one of them")
        if self.steady and self.step is not None:
            raise UsageError("--steady and --step both choose steps", "give one of them")
        if self.from_ns is not None and self.to_ns is not None and self.to_ns <= self.from_ns:
            raise UsageError(
                f"the window --from {exact_duration(self.from_ns)} --to {exact_duration(self.to_ns)} is empty",
                "--to must be after --from",
            )

    @property
    def range_pattern(self) -> str | None:
        """Return the name of the NVTX ranges, from `nvtx` or `phase`; None if the scope has no ranges.

        Tables cut long names with an ellipsis, which stands for anything.
        """
        pattern = self.phase if self.nvtx is None else self.nvtx
        return pattern if pattern is None else pattern.replace("…", "*")

    @property
    def has_steps(self) -> bool:
        """Return whether the scope selects steps."""
        return bool(self.steady) or self.step is not None

    @property
    def step_search_scope(self) -> Scope:
        """Return the scope in which the selected steps are detected."""
        return Scope(process=self.process, device=self.device)

    @property
    def is_steps_only(self) -> bool:
        """Return whether the scope is exactly the detected steps: all of their work, without further filters."""
        return self.has_steps and self.narrowed(steady=None, step=None) == self.step_search_scope

    @property
    def filters(self) -> dict[str, str | int]:
        """Return the filters that are set, by name."""
        return {name: value for name, value in vars(self).items() if value is not None and value is not False}

    @property
    def flags_text(self) -> str:
        """Return the filters as flags, as in a shell: ``--nvtx 'IO *' --device 0``."""
        return shlex.join(write_flags(self.filters))

    def narrowed(self, **changes: object) -> Scope:
        """Return this scope with some of its filters replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]


FULL_TRACE = Scope()


def write_flags(filters: Mapping[str, str | int]) -> list[str]:
    """Write filters of a scope as the flags that set them: ``--from 120ms``. Times are exact."""
    flags = []
    for name, value in filters.items():
        text = exact_duration(int(value)) if name.endswith("_ns") else str(value)
        flags += [f"--{name.removesuffix('_ns')}", *([] if value is True else [text])]
    return flags


def cut_column(scope: Scope, table: str, column: str, value: str) -> str:
    """Write the SQL for a column of a raw table: a time window cuts the NVTX ranges."""
    if table != "NVTX_EVENTS" or column not in ("start", "end"):
        return value
    if column == "start":
        lower_bounds = [str(scope.from_ns)] if scope.from_ns is not None else []
        lower_bounds += ["(SELECT min(start_ns) FROM internal.scope_ranges)"] if _cuts_to_steps(scope) else []
        return f"greatest({', '.join([value, *lower_bounds])})" if lower_bounds else value
    upper_bounds = [str(scope.to_ns)] if scope.to_ns is not None else []
    upper_bounds += ["(SELECT max(end_ns) FROM internal.scope_ranges)"] if _cuts_to_steps(scope) else []
    return f"least({', '.join([f'coalesce({value}, {upper_bounds[0]})', *upper_bounds])})" if upper_bounds else value


def write_condition(scope: Scope, table: str, columns: set[str]) -> str:
    """Write the SQL condition for the rows of a raw table that are in scope; empty if all are.

    A table is filtered by the columns that it has. API calls have no device, so `--device` keeps all of them.
    """
    if table.startswith(UNSCOPED_PREFIXES):
        return ""
    pid = next((f"pid_of({name})" for name in ("globalPid", "globalTid") if name in columns), "")
    time = next((identifier(name) for name in ("start", "timestamp", "startedAt") if name in columns), "")
    equal_filters = (("deviceId", scope.device), ("streamId", scope.stream), (pid, scope.process))
    tests = [
        f"{column} = {value}"
        for column, value in equal_filters
        if value is not None and (column in columns or column == pid != "")
    ]
    if scope.from_ns is not None and table == "NVTX_EVENTS":
        tests.append(f'("end" IS NULL OR "end" > {scope.from_ns})')
    elif scope.from_ns is not None and time:
        tests.append(f"{time} >= {scope.from_ns}")
    if scope.to_ns is not None and time:
        tests.append(f"{time} < {scope.to_ns}")
    if (scope.range_pattern is not None or scope.has_steps) and pid and "correlationId" in columns:
        tests.append(f"({pid}, correlationId) IN (FROM internal.scope_calls)")
    elif _cuts_to_steps(scope):
        tests += [step_scope.write_condition(table, time, pid)] if time else []
    elif (
        scope.range_pattern is not None and time and table != "GPU_METRICS"
    ):  # metrics belong to a GPU, which works later than the host's range
        thread = (
            "AND s.process_id = pid_of(globalTid) AND s.thread_id = tid_of(globalTid)" if "globalTid" in columns else ""
        )
        tests.append(
            f"EXISTS (FROM internal.scope_ranges AS s WHERE {time} >= s.start_ns AND {time} < s.end_ns {thread})"
        )
    test = " AND ".join(tests)
    # The rows with the names of NVTX domains come once, before all ranges.
    return f"eventType = 75 OR ({test})" if test and table == "NVTX_EVENTS" else test


def prepare(connection: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    """Create what the model and `write_condition` need: `scope`, and the tables `scope_…` of the schema `internal`.

    The views `wall`, `nvtx_ranges`, `nvtx_nesting`, `_phase_ranges` and `gpu_ops` must exist for the full trace, and
    `write_scope_table` must have run. For steps, the facts about them must exist (`facts.steps`, `facts.step_method`).

    Raises:
        UsageError: No NVTX range has the name, or there is no such step.
    """
    start, end, range_count = scope.from_ns, scope.to_ns, 0
    if scope.has_steps:
        step_scope.select_steps(connection, None if scope.steady else scope.step)
    if start is not None or end is not None:
        # A window may reach beyond the trace, where there is no time to attribute.
        (wall,) = fetch_rows(connection, "SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM wall")
        if wall.start_ns is not None:
            start = wall.start_ns if start is None else min(max(start, wall.start_ns), wall.end_ns)
            end = wall.end_ns if end is None else max(min(end, wall.end_ns), start)
    if scope.range_pattern is not None:
        range_count = _find_ranges(connection, scope)
    elif scope.has_steps:
        start, end = step_scope.create_step_tables(connection, scope.from_ns, scope.to_ns)
    elif start is not None and end is not None and end > start:
        connection.execute(f"INSERT INTO internal.scope_windows (start_ns, end_ns) VALUES ({start}, {end})")
    write_scope_table(connection, scope, start, end, range_count)


def finalize(connection: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    """Store which GPUs the work in scope used, and its time bounds, once the raw relations are narrowed.

    The GPUs go into the table `internal.scope_gpus`. The times go into `internal.scope_windows`, unless a window,
    ranges or steps define them. The view `gpu_ops` must exist.
    """
    if _narrows_gpus(scope):
        connection.execute(
            """INSERT INTO internal.scope_gpus BY NAME SELECT DISTINCT gpu_of(process_id, device_id) AS gpu_id
               FROM (SELECT DISTINCT process_id, device_id FROM gpu_ops)"""
        )
        if scope.range_pattern is not None:
            _add_gpus_of_processes(connection, scope)
    if scope.range_pattern is None and scope.from_ns is None and scope.to_ns is None and not scope.has_steps:
        bounds = time_bounds.select_time_bounds({})
        connection.execute(f"INSERT INTO internal.scope_windows BY NAME FROM ({bounds}) WHERE end_ns > start_ns")


def _add_gpus_of_processes(connection: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    """If ranges launched no GPU work, the GPUs in scope are those that the processes of the ranges use elsewhere."""
    tables = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")
    devices = " UNION ".join(f"SELECT globalPid, deviceId FROM unscoped.CUPTI_ACTIVITY_KIND_{name}" for name in tables)
    device_test = "true" if scope.device is None else f"deviceId = {scope.device}"
    connection.execute(
        f"""INSERT INTO internal.scope_gpus BY NAME SELECT DISTINCT gpu_of(pid_of(globalPid), deviceId) AS gpu_id
            FROM ({devices})
            WHERE NOT EXISTS (FROM internal.scope_gpus) AND {device_test}
                AND pid_of(globalPid) IN (SELECT process_id FROM internal.scope_ranges)"""
    )


def write_scope_table(
    connection: duckdb.DuckDBPyConnection,
    scope: Scope = FULL_TRACE,
    start_ns: int | None = None,
    end_ns: int | None = None,
    range_count: int = 0,
) -> None:
    """Create the one-row table `scope`, with the window cut to the trace and the number of matching NVTX ranges.

    The macro `in_scope` cuts a GPU's intervals to the time of the scope. `is_gpu_in_scope` returns whether the scope
    has work on a GPU.
    """
    in_scope_body = "FROM query_table(intervals)"
    if scope != FULL_TRACE:
        in_scope_body = (
            "WITH windows_in_scope AS (FROM internal.scope_windows) FROM cut_to(intervals, 'windows_in_scope')"
        )
    gpu_test = "gpu_id IN (FROM internal.scope_gpus)" if _narrows_gpus(scope) else "true"
    connection.execute(
        f"""CREATE TABLE IF NOT EXISTS internal.scope_windows (start_ns BIGINT, end_ns BIGINT);
            CREATE TABLE IF NOT EXISTS internal.scope_gpus (gpu_id BIGINT);
            CREATE TABLE IF NOT EXISTS internal.scope_ranges (
                process_id BIGINT, thread_id BIGINT, start_ns BIGINT, end_ns BIGINT
            );
            CREATE OR REPLACE TABLE scope AS SELECT
            {literal(scope.range_pattern)}::VARCHAR AS nvtx, {literal(scope.phase is not None)} AS is_phase,
            {literal("steady" if scope.steady else scope.step)}::VARCHAR AS steps,
            {literal(scope.is_steps_only)} AS is_of_steps_alone,
            {range_count}::BIGINT AS range_count,
            {literal(start_ns)}::BIGINT AS from_ns, {literal(end_ns)}::BIGINT AS to_ns,
            {literal(scope.device)}::BIGINT AS device_id, {literal(scope.process)}::BIGINT AS process_id,
            {literal(scope.stream)}::BIGINT AS stream_id;
            CREATE OR REPLACE MACRO in_scope(intervals) AS TABLE
            {in_scope_body};
            CREATE OR REPLACE MACRO is_gpu_in_scope(gpu_id) AS {gpu_test}"""
    )


def _narrows_gpus(scope: Scope) -> bool:
    return scope.range_pattern is not None or scope.has_steps or scope.process is not None or scope.stream is not None


def _cuts_to_steps(scope: Scope) -> bool:
    """Return whether the host intervals of steps define the scope; NVTX ranges inside steps are handled as ranges."""
    return scope.has_steps and scope.range_pattern is None


def _find_ranges(connection: duckdb.DuckDBPyConnection, scope: Scope) -> int:
    """Create the tables of an NVTX scope; return the number of matching ranges."""
    window_test = " AND ".join(
        ["true"]
        + ([f"coalesce(end_ns, start_ns + 1) > {scope.from_ns}"] if scope.from_ns is not None else [])
        + ([f"start_ns < {scope.to_ns}"] if scope.to_ns is not None else [])
        + ([f"process_id = {scope.process}"] if scope.process is not None else [])
    )
    pattern = literal(scope.range_pattern)
    path_test = f"fits_pattern(path, {pattern}) OR fits_pattern(path, '*/' || {pattern})"
    name_test = f"{pattern} IN (name, domain || ':' || name) OR fits_pattern(name, {pattern})"
    if "…" in str(scope.nvtx):  # a cut name begins with its domain
        name_test += f" OR fits_pattern(domain || ':' || name, {pattern})"
    if "#" in str(scope.range_pattern):  # reports write # for the numbers in names
        path_test += f" OR fits_pattern(folded_name(path), {pattern})"
        path_test += f" OR fits_pattern(folded_name(path), '*/' || {pattern})"
        name_test += f" OR fits_pattern(folded_name(name), {pattern})"
        name_test += f" OR fits_pattern(folded_name(domain || ':' || name), {pattern})"
    path_query = f"""
                UNION
                SELECT process_id, thread_id, start_ns, end_ns FROM nvtx_nesting WHERE {path_test}"""
    path_query = path_query if "/" in str(scope.range_pattern) else ""  # all paths of a big trace take seconds
    ranges_query = f"""
                SELECT process_id, thread_id, start_ns, end_ns FROM nvtx_ranges WHERE {name_test} {path_query}"""
    if scope.phase is not None:
        phase_query = f"FROM _phase_ranges WHERE step_phase = {pattern}"
        if connection.execute(f"{phase_query} LIMIT 1").fetchall():
            ranges_query = (
                f"SELECT DISTINCT process_id, thread_id, step_start_ns AS start_ns, step_end_ns AS end_ns {phase_query}"
            )
    named_ranges = ranges_query
    if scope.has_steps:
        ranges_query = f"""
                SELECT n.process_id, n.thread_id, greatest(n.start_ns, s.start_ns) AS start_ns,
                    least(coalesce(n.end_ns, s.end_ns), s.end_ns) AS end_ns
                FROM ({ranges_query}) AS n
                JOIN internal.scope_step_time AS s ON s.process_id = n.process_id AND n.start_ns < s.end_ns
                    AND (n.end_ns IS NULL OR n.end_ns > s.start_ns)"""
    connection.execute(
        f"""CREATE OR REPLACE TABLE internal.scope_matching_ranges AS
            SELECT process_id, thread_id,
                greatest(start_ns, {literal(scope.from_ns)}::BIGINT) AS start_ns,
                least(coalesce(end_ns, 9223372036854775807), {literal(scope.to_ns)}::BIGINT) AS end_ns
            FROM ({ranges_query})
            WHERE {window_test}"""
    )
    count = connection.execute("SELECT count(*) FROM internal.scope_matching_ranges").fetchall()[0][0]
    if not count and connection.execute(f"SELECT 1 FROM ({named_ranges}) LIMIT 1").fetchall():
        raise UsageError(
            f"no NVTX range {scope.range_pattern!r} is in the rest of the scope",
            f"leave out {scope.narrowed(nvtx=None, phase=None).flags_text}",
        )
    if not count:
        raise UsageError(*_explain_missing_range(connection, scope))
    connection.execute(
        """CREATE OR REPLACE TABLE internal.scope_ranges AS
               WITH ranges AS (
                   SELECT process_id AS group_id, thread_id AS thread, start_ns, end_ns AS close_ns
                   FROM internal.scope_matching_ranges
               )
               SELECT group_id AS process_id, thread AS thread_id, start_ns, close_ns AS end_ns
               FROM _stretches_of('ranges')"""
    )
    # An open range lasts to the end of the trace: of its CUDA events, else of its ranges.
    last = connection.execute(
        """SELECT coalesce(
               (SELECT max(end_ns) FROM wall),
               (SELECT max(greatest(start_ns, coalesce(end_ns, start_ns))) FROM nvtx_ranges))"""
    ).fetchall()[0][0]
    connection.execute(
        f"UPDATE internal.scope_ranges SET end_ns = greatest(start_ns, {last}) WHERE end_ns = 9223372036854775807"
    )
    connection.execute(
        """CREATE OR REPLACE TABLE internal.scope_windows AS
               WITH ranges AS (
                   SELECT NULL AS group_id, NULL AS thread, start_ns, end_ns AS close_ns FROM internal.scope_ranges
               )
               SELECT start_ns, close_ns AS end_ns FROM _stretches_of('ranges')"""
    )
    connection.execute(
        """CREATE OR REPLACE TABLE internal.scope_calls AS
           SELECT DISTINCT pid_of(c.globalTid) AS process_id, c.correlationId AS correlation_id
           FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME AS c
           ASOF JOIN internal.scope_ranges AS s
               ON s.process_id = pid_of(c.globalTid) AND s.thread_id = tid_of(c.globalTid) AND s.start_ns <= c.start
           WHERE c.start < s.end_ns AND c.correlationId IS NOT NULL AND c.eventClass IS DISTINCT FROM 67"""
    )
    return int(count)


def _explain_missing_range(connection: duckdb.DuckDBPyConnection, scope: Scope) -> tuple[str, str]:
    """Return an error text and a hint: no range has this name, and which ones there are."""
    if scope.phase is None:
        has_deeper = (
            "/" in str(scope.nvtx)
            and connection.execute(f"SELECT 1 FROM nvtx_nesting WHERE depth > {LAST_NAMED_DEPTH} LIMIT 1").fetchall()
        )
        deeper = f"; paths have no names of ranges deeper than {LAST_NAMED_DEPTH}" if has_deeper else ""
        return f"no NVTX range is named {scope.nvtx!r}{deeper}", _suggest_ranges(connection, str(scope.nvtx))
    phases = connection.execute(
        "SELECT step_phase FROM _phase_ranges GROUP BY step_phase ORDER BY count(*) DESC, step_phase"
    ).fetchall()
    hint = f"there are: {', '.join(name for (name,) in phases)}" if phases else _suggest_ranges(connection, scope.phase)
    return f"no NVTX ranges name a phase {scope.phase!r}, and none has this name", hint


def _suggest_ranges(connection: duckdb.DuckDBPyConnection, missing_name: str) -> str:
    names = [
        name
        for (name,) in connection.execute(
            "SELECT name FROM nvtx_ranges GROUP BY name ORDER BY count(*) DESC, name LIMIT 1000"
        ).fetchall()
    ]
    if not names:
        return "there are no NVTX ranges in this trace; mark ranges in the program, and capture with -t cuda,nvtx"
    examples = ", ".join(map(quote_name, names[:3])) + (" …" if len(names) > 3 else "")
    suggestion = did_you_mean(missing_name, names, 3, quoted=True)
    return (
        f"{suggestion} nsys-insight nvtx lists them; * matches anything"
        if suggestion
        else (f"there are {examples}; nsys-insight nvtx lists them; * matches anything")
    )
