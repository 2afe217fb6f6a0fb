/*
code = "NSI119"
title = "The default stream keeps other streams waiting"
family = "default-stream"
meaning = """
Work on the legacy default stream begins after all earlier work of blocking streams, and their later work begins after
it. So work on streams that could overlap runs one after the other."""
evidence = [
    """{held:operation waits|operations wait} {per} for {held_ns} until work of another stream ends: one of the two is
    on the default stream, and the own stream is free""",
    "{overlap_ns} of work {per} could run at the same time as other work, mostly {name}",
]
skip_if = """
The work needs the result of the other stream: then order the two with an event. A program that relies on this order
without an event becomes wrong without it."""
effort = "flag"
estimate = """
High: the time in which such an operation waits, at most its duration. Only pairs count that can overlap: a copy and a
kernel, copies in two directions, or a kernel with fewer blocks than the GPU has SMs; and the time from the end of one
to the start of the other. Low: a third of it, because the two share the GPU."""
links = ["CUDA Runtime API, Stream synchronization behavior"]
report = "streams"
when = """
SELECT 1 FROM _operation_counts JOIN cuda_streams USING (process_id, stream_id)
HAVING bool_or(stream_type = 'null stream') AND bool_or(stream_type = 'default stream')"""

[fix]
any = """
Launch nothing on the default stream while other streams work, or create these as non-blocking streams; order with
events what depends on the other."""
cuda = """
Give each launch, copy and memset (cudaMemsetAsync) its stream, compile with nvcc --default-stream per-thread, or create
the streams with cudaStreamNonBlocking (cudaStreamCreateWithFlags); order with events what depends on the other."""
cupy = "Create the streams with cupy.cuda.Stream(non_blocking=True), and launch nothing on Stream.null meanwhile."
numba = "Pass a stream to every launch and copy, or set NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM=1."

[params]
min_pct = [1.0, "Least share of the wall time that could run at the same time (1: what runs differ by)"]
max_delay_ns = [10000,
    "Longest time from the end of one to the start of the other (10 µs: what a dependency of streams takes)"]
*/
WITH blocking_streams AS (
    SELECT process_id, stream_id, bool_or(stream_type = 'null stream') AS is_null
    FROM cuda_streams WHERE stream_type IN ('null stream', 'default stream') GROUP BY ALL
),
operations AS (
    SELECT o.*, s.is_null, c.end_ns AS issued_ns
    FROM (
        SELECT process_id, device_id, stream_id, correlation_id, start_ns, end_ns, name_id, NULL AS copy_kind,
            grid_x::BIGINT * grid_y * grid_z < (SELECT max(sm_count) FROM gpus) AS is_small
        FROM kernel_events
        UNION ALL
        SELECT process_id, device_id, stream_id, correlation_id, start_ns, end_ns, NULL, copy_kind, true
        FROM (FROM memcpys UNION ALL BY NAME FROM memsets)
    ) AS o JOIN blocking_streams AS s USING (process_id, stream_id)
    JOIN outer_api_calls AS c USING (process_id, correlation_id)
),
-- The last end so far of the same stream, and the operation of the other side that ended last.
orders AS (
    SELECT
        *, coalesce(lag(end_ns) OVER own_stream, 0) AS own_end_ns,
        {start: start_ns, stop: end_ns, small: is_small, copies: copy_kind} AS this,
        CASE WHEN is_null THEN arg_max(this, end_ns) FILTER (NOT is_null) OVER earlier
            ELSE arg_max(this, end_ns) FILTER (is_null) OVER earlier END AS other
    FROM operations
    WINDOW earlier AS (
        PARTITION BY process_id, device_id ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), own_stream AS (PARTITION BY process_id, device_id, stream_id ORDER BY start_ns)
),
held_operations AS (
    SELECT *,
        -- A small kernel behind the default stream could also overlap with what the default stream waited for.
        CASE WHEN is_small AND NOT is_null THEN 0 ELSE other.start END AS earliest_ns,
        least(other.stop - greatest(issued_ns, own_end_ns, earliest_ns), end_ns - start_ns) AS overlap_ns,
        other.stop - greatest(issued_ns, own_end_ns, other.start) AS wait_ns, start_ns - other.stop AS gap_ns
    FROM orders
    WHERE start_ns BETWEEN other.stop AND other.stop + $max_delay_ns
        AND issued_ns < other.stop AND own_end_ns < other.stop
        -- Memsets hold others, and are too short to gain.
        AND coalesce(name_id::VARCHAR, copy_kind) IS NOT NULL
        -- Kernels that fill the GPU, and copies in one direction, do not overlap.
        AND (is_small OR other.small) AND coalesce(copy_kind <> other.copies, true)
),
held_totals AS (
    SELECT
        count(*)::DOUBLE AS held, sum(h.wait_ns)::DOUBLE AS held_ns, sum(h.gap_ns)::DOUBLE AS gap_ns,
        -- Both sides may be held in turn, but what overlaps counts once.
        greatest(sum(h.overlap_ns) FILTER (h.is_null), sum(h.overlap_ns) FILTER (NOT h.is_null))::DOUBLE AS overlap_ns,
        mode(coalesce(h.copy_kind || ' copy', kernel_base_name(n.name))) AS name, count(h.copy_kind) AS held_copies
    FROM held_operations AS h
    ASOF JOIN _steady_windows AS w ON w.start_ns <= h.start_ns LEFT JOIN kernel_names AS n USING (name_id)
    WHERE h.start_ns < w.end_ns HAVING count(*) > 0
)
SELECT
    (h.overlap_ns + h.gap_ns) / t.units AS saved_ns,
    least(saved_ns, CASE WHEN t.has_steps THEN limits.high_limit_ns END) AS recoverable_ns,
    recoverable_ns / 3 AS saving_low_ns, 100 * recoverable_ns / t.wall_ns AS wall_pct, NULL AS place,
    CASE WHEN t.has_steps AND saved_ns > limits.high_limit_ns THEN 'the host' END AS bounded_by,
    ['start', 'small-grid'] || CASE WHEN h.held_copies > 0 THEN ['copy'] ELSE [] END AS explains,
    h.held / t.units AS held, h.held_ns / t.units AS held_ns, h.overlap_ns / t.units AS overlap_ns, h.name
FROM held_totals AS h, _step_totals AS t, _step_limits AS limits
-- Events order the streams where the program waits for them.
WHERE 100 * h.overlap_ns / t.units >= $min_pct * t.wall_ns
    AND NOT EXISTS (FROM _call_counts WHERE name LIKE 'cu%StreamWaitEvent' AND calls >= 0.1 * h.held)
