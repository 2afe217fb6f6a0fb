"""The part of a trace that a question means: NVTX ranges, a phase, steps, a window of time, a device, and so on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError
from nsys_insight.ingest import chosen_steps, extents
from nsys_insight.sql.intervals import merged
from nsys_insight.sql.quoting import identifier, literal
from nsys_insight.sql.rows import named_rows
from nsys_insight.text.near import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

# Tables that name things, or speak of the whole capture.
KEPT_WHOLE = (
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


@dataclass(frozen=True)
class Scope:
    """What to look at; None does not narrow.

    An event is in a window of time if it begins there (`from_ns` included, `to_ns` not), so that the windows of a
    partition add up; an NVTX range is in it as far as it reaches into it. A GPU operation is in an NVTX range if its
    launch call began inside the range, on its thread. `nvtx` is a range's name, or its path such as
    ``decode_step/layer_0``; `*` and `?` in it stand for anything. `phase` is one that NVTX ranges name in whatever way
    (prefill, decode, mixed, forward …): all steps of it; where none is called so, it is a range's name.

    `steady` and `step` choose steps as the view `steps` has them: those of the phase steady, or the one of this number.
    As there, API calls are in a step if they begin in its host interval, GPU operations by their launch call, and the
    time of the scope is the walls of these steps. They are looked for in the process and device that the scope names.
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
        """Refuse a window without length, two names of ranges, and two choices of steps."""
        if self.nvtx is not None and self.phase is not None:
            raise UsageError("--nvtx and --phase both name ranges", "give one of them")
        if self.steady and self.step is not None:
            raise UsageError("--steady and --step both choose steps", "give one of them")
        if self.from_ns is not None and self.to_ns is not None and self.to_ns <= self.from_ns:
            raise UsageError(
                f"the window from {self.from_ns} ns to {self.to_ns} ns is empty", "--to must be after --from"
            )

    @property
    def ranges(self) -> str | None:
        """What the NVTX ranges are called that are meant, by `nvtx` or `phase`; None for no ranges."""
        return self.phase if self.nvtx is None else self.nvtx

    @property
    def of_steps(self) -> bool:
        """Whether steps are chosen."""
        return bool(self.steady) or self.step is not None

    @property
    def around_steps(self) -> Scope:
        """Where the steps are looked for that are chosen."""
        return Scope(process=self.process, device=self.device)

    @property
    def is_of_steps_alone(self) -> bool:
        """Whether the scope is steps as they were found: all of their work, and nothing else."""
        return self.of_steps and self.narrowed(steady=None, step=None) == self.around_steps

    @property
    def given(self) -> dict[str, str | int]:
        """The parts that narrow, by name."""
        return {name: value for name, value in vars(self).items() if value is not None and value is not False}

    @property
    def words(self) -> str:
        """The parts that narrow as flags, for people to read: ``--nvtx decode_step --device 0``."""
        return " ".join(words(self.given))

    def narrowed(self, **changes: object) -> Scope:
        """Return this scope with some of its parts replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]


WHOLE_TRACE = Scope()


def words(given: Mapping[str, str | int]) -> list[str]:
    """Write parts of a scope as the flags that name them; times are in ns."""
    flags = []
    for name, value in given.items():
        flags += [f"--{name.removesuffix('_ns')}", *([] if value is True else [str(value)])]
    return flags


def cut(scope: Scope, table: str, column: str, value: str) -> str:
    """Write the SQL for a column of a raw table as the scope leaves it: a window of time cuts the ranges of NVTX."""
    if table != "NVTX_EVENTS" or column not in ("start", "end"):
        return value
    if column == "start":
        least = [str(scope.from_ns)] if scope.from_ns is not None else []
        least += ["(SELECT min(start_ns) FROM internal.scope_ranges)"] if _cuts_to_steps(scope) else []
        return f"greatest({', '.join([value, *least])})" if least else value
    most = [str(scope.to_ns)] if scope.to_ns is not None else []
    most += ["(SELECT max(end_ns) FROM internal.scope_ranges)"] if _cuts_to_steps(scope) else []
    return f"least({', '.join([f'coalesce({value}, {most[0]})', *most])})" if most else value


def condition(scope: Scope, table: str, columns: set[str]) -> str:
    """Write the SQL condition that keeps the rows of a raw table which are in scope; empty if all are.

    A table is narrowed by what it has: an API call belongs to no device, so `--device` leaves all of them.
    """
    if table.startswith(KEPT_WHOLE):
        return ""
    pid = next((f"pid_of({name})" for name in ("globalPid", "globalTid") if name in columns), "")
    time = next((identifier(name) for name in ("start", "timestamp") if name in columns), "")
    kept = (("deviceId", scope.device), ("streamId", scope.stream), (pid, scope.process))
    tests = [f"{of} = {value}" for of, value in kept if value is not None and (of in columns or of == pid != "")]
    if scope.from_ns is not None and table == "NVTX_EVENTS":
        tests.append(f'("end" IS NULL OR "end" > {scope.from_ns})')
    elif scope.from_ns is not None and time:
        tests.append(f"{time} >= {scope.from_ns}")
    if scope.to_ns is not None and time:
        tests.append(f"{time} < {scope.to_ns}")
    if (scope.ranges is not None or scope.of_steps) and pid and "correlationId" in columns:
        tests.append(f"({pid}, correlationId) IN (FROM internal.scope_calls)")
    elif _cuts_to_steps(scope):
        tests += [chosen_steps.condition(table, time, pid)] if time else []
    elif (
        scope.ranges is not None and time and table != "GPU_METRICS"
    ):  # which are of a GPU, later than the host's range
        thread = (
            "AND s.process_id = pid_of(globalTid) AND s.thread_id = tid_of(globalTid)" if "globalTid" in columns else ""
        )
        tests.append(
            f"EXISTS (FROM internal.scope_ranges AS s WHERE {time} >= s.start_ns AND {time} < s.end_ns {thread})"
        )
    test = " AND ".join(tests)
    # The rows that name NVTX domains come once, before all ranges.
    return f"eventType = 75 OR ({test})" if test and table == "NVTX_EVENTS" else test


def prepare(connection: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    """Create what the model and `condition` refer to: `scope`, and the tables `scope_…` of the schema `internal`.

    The views `wall`, `nvtx_ranges`, `nvtx_nesting`, `_phase_ranges` and `gpu_ops` must be there, over the whole trace,
    and `describe` called; where steps are chosen, the facts about them must be (`facts.steps`, `facts.step_method`).

    Raises:
        UsageError: No NVTX range has the name, or there is no such step.
    """
    start, end, ranges = scope.from_ns, scope.to_ns, 0
    if scope.of_steps:
        chosen_steps.choose(connection, None if scope.steady else scope.step)
    if start is not None or end is not None:
        # A window may reach beyond the trace; the time out there is nobody's.
        (wall,) = named_rows(connection, "SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM wall")
        if wall.start_ns is not None:
            start = wall.start_ns if start is None else min(max(start, wall.start_ns), wall.end_ns)
            end = wall.end_ns if end is None else max(min(end, wall.end_ns), start)
    if scope.ranges is not None:
        ranges = _find_ranges(connection, scope)
    elif scope.of_steps:
        start, end = chosen_steps.cut_to_them(connection, scope.from_ns, scope.to_ns)
    elif start is not None and end is not None and end > start:
        connection.execute(f"INSERT INTO internal.scope_windows (start_ns, end_ns) VALUES ({start}, {end})")
    describe(connection, scope, start, end, ranges)


def settle(connection: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    """Write down, once the raw relations are narrowed, which GPUs the work in scope used, and from when to when.

    The GPUs go into the table `internal.scope_gpus`; the time into `internal.scope_windows`, where no window or range
    gives it. The view `gpu_ops` must be there.
    """
    if _narrows_gpus(scope):
        connection.execute(
            """INSERT INTO internal.scope_gpus BY NAME SELECT DISTINCT gpu_of(process_id, device_id) AS gpu_id
               FROM (SELECT DISTINCT process_id, device_id FROM gpu_ops)"""
        )
    if scope.ranges is None and scope.from_ns is None and scope.to_ns is None and not scope.of_steps:
        connection.execute(
            f"INSERT INTO internal.scope_windows BY NAME FROM ({extents.select({})}) WHERE end_ns > start_ns"
        )


def describe(
    connection: duckdb.DuckDBPyConnection,
    scope: Scope = WHOLE_TRACE,
    start: int | None = None,
    end: int | None = None,
    ranges: int = 0,
) -> None:
    """Write the one-row table `scope`, with the window cut to the trace and the number of NVTX ranges meant.

    The macro `in_scope` cuts a GPU's intervals to the scope's own time, `is_gpu_in_scope` tells whether the scope has
    work on a GPU.
    """
    in_scope = "FROM query_table(intervals)"
    if scope != WHOLE_TRACE:
        in_scope = "WITH windows_in_scope AS (FROM internal.scope_windows) FROM cut_to(intervals, 'windows_in_scope')"
    gpus = "gpu_id IN (FROM internal.scope_gpus)" if _narrows_gpus(scope) else "true"
    connection.execute(
        f"""CREATE TABLE IF NOT EXISTS internal.scope_windows (start_ns BIGINT, end_ns BIGINT);
            CREATE TABLE IF NOT EXISTS internal.scope_gpus (gpu_id BIGINT);
            CREATE TABLE IF NOT EXISTS internal.scope_ranges (
                process_id BIGINT, thread_id BIGINT, start_ns BIGINT, end_ns BIGINT
            );
            CREATE OR REPLACE TABLE scope AS SELECT
            {literal(scope.ranges)}::VARCHAR AS nvtx, {literal(scope.phase is not None)} AS is_phase,
            {literal("steady" if scope.steady else scope.step)}::VARCHAR AS steps,
            {literal(scope.is_of_steps_alone)} AS is_of_steps_alone,
            {ranges}::BIGINT AS range_count,
            {literal(start)}::BIGINT AS from_ns, {literal(end)}::BIGINT AS to_ns,
            {literal(scope.device)}::BIGINT AS device_id, {literal(scope.process)}::BIGINT AS process_id,
            {literal(scope.stream)}::BIGINT AS stream_id;
            CREATE OR REPLACE MACRO in_scope(intervals) AS TABLE
            {in_scope};
            CREATE OR REPLACE MACRO is_gpu_in_scope(gpu_id) AS {gpus}"""
    )


def _narrows_gpus(scope: Scope) -> bool:
    return scope.ranges is not None or scope.of_steps or scope.process is not None or scope.stream is not None


def _cuts_to_steps(scope: Scope) -> bool:
    """Whether the host intervals of steps say what is in scope; NVTX ranges inside them are a matter of ranges."""
    return scope.of_steps and scope.ranges is None


def _find_ranges(connection: duckdb.DuckDBPyConnection, scope: Scope) -> int:
    """Make the tables of an NVTX scope and return how many ranges it means."""
    in_window = " AND ".join(
        ["true"]
        + ([f"coalesce(end_ns, start_ns + 1) > {scope.from_ns}"] if scope.from_ns is not None else [])
        + ([f"start_ns < {scope.to_ns}"] if scope.to_ns is not None else [])
        + ([f"process_id = {scope.process}"] if scope.process is not None else [])
    )
    # Only * and ? match anything; a bracket is a bracket.
    wanted, pattern = literal(scope.ranges), literal(str(scope.ranges).replace("[", "[[]"))
    paths = f"""
                UNION
                SELECT process_id, thread_id, start_ns, end_ns FROM nvtx_nesting
                WHERE path GLOB {pattern} OR path GLOB '*/' || {pattern}"""
    paths = paths if "/" in str(scope.ranges) else ""  # to find all paths takes seconds on a big trace
    named = f"""
                SELECT process_id, thread_id, start_ns, end_ns FROM nvtx_ranges
                WHERE {wanted} IN (name, domain || ':' || name) OR name GLOB {pattern} {paths}"""
    if scope.phase is not None:
        of_phase = f"FROM _phase_ranges WHERE step_phase = {wanted}"
        if connection.execute(f"{of_phase} LIMIT 1").fetchall():
            named = (
                f"SELECT DISTINCT process_id, thread_id, step_start_ns AS start_ns, step_end_ns AS end_ns {of_phase}"
            )
    if scope.of_steps:
        named = f"""
                SELECT n.process_id, n.thread_id, greatest(n.start_ns, s.start_ns) AS start_ns,
                    least(coalesce(n.end_ns, s.end_ns), s.end_ns) AS end_ns
                FROM ({named}) AS n
                JOIN internal.scope_step_time AS s ON s.process_id = n.process_id AND n.start_ns < s.end_ns
                    AND (n.end_ns IS NULL OR n.end_ns > s.start_ns)"""
    connection.execute(
        f"""CREATE OR REPLACE TABLE internal.scope_found AS
            SELECT process_id, thread_id,
                greatest(start_ns, {literal(scope.from_ns)}::BIGINT) AS start_ns,
                least(coalesce(end_ns, 9223372036854775807), {literal(scope.to_ns)}::BIGINT) AS end_ns
            FROM ({named})
            WHERE {in_window}"""
    )
    count = connection.execute("SELECT count(*) FROM internal.scope_found").fetchall()[0][0]
    if not count:
        raise UsageError(*_no_range(connection, scope))
    connection.execute(
        "CREATE OR REPLACE TABLE internal.scope_ranges AS " + merged("process_id, thread_id", "internal.scope_found")
    )
    # An open range lasts to the end of the trace: of its CUDA events, or else of its ranges.
    last = connection.execute(
        """SELECT coalesce(
               (SELECT max(end_ns) FROM wall),
               (SELECT max(greatest(start_ns, coalesce(end_ns, start_ns))) FROM nvtx_ranges))"""
    ).fetchall()[0][0]
    connection.execute(
        f"UPDATE internal.scope_ranges SET end_ns = greatest(start_ns, {last}) WHERE end_ns = 9223372036854775807"
    )
    connection.execute("CREATE OR REPLACE TABLE internal.scope_windows AS " + merged("", "internal.scope_ranges"))
    connection.execute(
        """CREATE OR REPLACE TABLE internal.scope_calls AS
           SELECT DISTINCT pid_of(c.globalTid) AS process_id, c.correlationId AS correlation_id
           FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME AS c
           ASOF JOIN internal.scope_ranges AS s
               ON s.process_id = pid_of(c.globalTid) AND s.thread_id = tid_of(c.globalTid) AND s.start_ns <= c.start
           WHERE c.start < s.end_ns AND c.correlationId IS NOT NULL AND c.eventClass IS DISTINCT FROM 67"""
    )
    return int(count)


def _no_range(connection: duckdb.DuckDBPyConnection, scope: Scope) -> tuple[str, str]:
    """Say that no range is called so, and what there is."""
    if scope.phase is None:
        return f"no NVTX range is named {scope.nvtx!r}", _near_ranges(connection, str(scope.nvtx))
    phases = connection.execute(
        "SELECT step_phase FROM _phase_ranges GROUP BY step_phase ORDER BY count(*) DESC, step_phase"
    ).fetchall()
    hint = f"there are: {', '.join(name for (name,) in phases)}" if phases else _near_ranges(connection, scope.phase)
    return f"no NVTX ranges name a phase {scope.phase!r}, and none has this name", hint


def _near_ranges(connection: duckdb.DuckDBPyConnection, wanted: str) -> str:
    names = [
        name
        for (name,) in connection.execute(
            "SELECT name FROM nvtx_ranges GROUP BY name ORDER BY count(*) DESC, name LIMIT 1000"
        ).fetchall()
    ]
    if not names:
        return "there are no NVTX ranges in this trace; capture with -t cuda,nvtx and mark ranges in the program"
    some = ", ".join(repr(name) for name in names[:3]) + (" …" if len(names) > 3 else "")
    near = did_you_mean(wanted, names, 3, quoted=True)
    return (
        f"{near} nsys-insight nvtx lists them; * matches anything"
        if near
        else (f"there are {some}; nsys-insight nvtx lists them; * matches anything")
    )
