/*
description = """The waits, allocations and frees of the thread that an idle GPU waited for: one row per call and gap in
    which it ended, or that its own copy ended."""
stored = true
[columns]
charge = "wait or allocation"
thread_id = "Thread that called, and launched what ended the gap"
call_start_ns = "When the call began"
start_ns = "When the call began; for a wait, when the wait began, as in `waits`"
end_ns = "When the call returned"
held_ns = "Time for which the call blocked the host"
gap_start_ns = "When the GPU became idle, as in `gpu_gaps`"
gap_end_ns = "When the next operation started"
dry_ns = "When the operations before it ended: gap_start_ns, unless the scope cut the gap"
*/
-- When a GPU starts an operation, the thread that launched it is either in a call or between calls. So each call ends
-- in at most one gap, and at most one call is still in progress at the end of a gap: a copy that ends the gap.
WITH blocking_calls AS MATERIALIZED (
    SELECT
        'wait' AS charge, process_id, thread_id, thread_of(thread_id, process_id) AS thread, call_start_ns, start_ns,
        end_ns, wait_ns AS held_ns
    FROM waits
    UNION ALL
    SELECT
        'allocation', process_id, thread_id, thread_of(thread_id, process_id), start_ns, start_ns, end_ns, duration_ns
    FROM outer_api_calls
    WHERE call_group IN ('alloc', 'free')
),
-- A gap in which a call ends begins or ends in the same time slice as the call. The slices are at least as long as the
-- gap. That leaves few of millions of gaps to sort.
slices AS MATERIALIZED (
    SELECT DISTINCT unnest([16384, 262144, 4194304, 67108864]) AS size_ns, end_ns // size_ns AS slice
    FROM blocking_calls
),
candidate_gaps AS (
    SELECT * EXCLUDE (size_ns)
    FROM (
        SELECT
            *,
            CASE
                WHEN duration_ns <= 16384 THEN 16384
                WHEN duration_ns <= 262144 THEN 262144
                WHEN duration_ns <= 4194304 THEN 4194304
            WHEN duration_ns <= 67108864 THEN 67108864 END AS size_ns
        FROM gpu_gaps
    )
    WHERE (size_ns, start_ns // size_ns) IN (FROM slices) OR (size_ns, end_ns // size_ns) IN (FROM slices)
        OR size_ns IS NULL
        OR next_ns IN (SELECT start_ns FROM memcpys WHERE copy_kind LIKE '%H%')
),
-- The gaps whose launch call had not returned before the gap.
gaps AS MATERIALIZED (
    SELECT
        g.gpu_id::BIGINT AS gpu_id, g.start_ns AS gap_start_ns, g.end_ns AS gap_end_ns, g.running_end_ns AS dry_ns,
        i.thread
    FROM candidate_gaps AS g
    JOIN _idle_time AS i ON i.gpu_id = g.gpu_id AND i.start_ns = g.running_end_ns
    WHERE i.returned_ns > i.start_ns
),
-- Calls with the gap in which they end.
calls_ending_in_gaps AS (
    SELECT h.*, g.gap_start_ns, g.gap_end_ns, g.dry_ns
    FROM (FROM blocking_calls JOIN (SELECT DISTINCT gpu_id, thread FROM gaps) USING (thread)) AS h
    ASOF JOIN gaps AS g ON g.gpu_id = h.gpu_id AND g.thread = h.thread AND g.gap_start_ns <= h.end_ns
    WHERE h.end_ns < g.gap_end_ns
),
-- Calls that are still in progress at the end of the gap.
calls_in_progress AS (
    SELECT h.*, g.gpu_id, g.gap_start_ns, g.gap_end_ns, g.dry_ns
    FROM gaps AS g
    ASOF JOIN blocking_calls AS h ON h.thread = g.thread AND h.start_ns <= g.gap_end_ns
    WHERE h.end_ns >= g.gap_end_ns
)
SELECT * EXCLUDE (thread) FROM calls_ending_in_gaps
UNION ALL BY NAME
SELECT * EXCLUDE (thread) FROM calls_in_progress;
