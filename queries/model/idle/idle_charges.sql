/*
description = """The waits and allocations that GPU idle time is attributed to: one row per step, GPU, wait or
    allocation, gap, and what the host did. A wait gets the idle time in which the thread that launched the next
    operation was in it, and the time of late launches after it in the same gap, up to the rest of the time that the
    wait blocked the host: without the wait, the host would have been that far ahead. Time in MPI calls is theirs, and
    an operation that starts 100 µs or more after its launch call has returned does not wait for the host. An
    allocation or a free gets the idle time in which that thread was in it. No idle time is counted twice."""
stored = true
[columns]
step = "The steady step in whose wall time the idle time is; NULL outside of them"
charge = """wait; allocation: of frees too; tracing: half a microsecond for each kernel of a CUDA graph that is traced
    by node, by which the launch of the graph takes longer"""
process_id = """Process of the wait or allocation: with thread_id and call_start_ns it identifies the row of `waits` or
    `api_calls`; NULL for tracing"""
thread_id = "Thread of the wait or allocation"
call_start_ns = "When the call of the wait or allocation began"
gap_start_ns = "When the gap began that the idle time is part of: start_ns of `gpu_gaps`"
cause = "What `gpu_idle` calls this time"
host = "What the host did in this time, as `gpu_idle` calls it"
idle_ns = "How long"
*/
-- `_idle_in` splits idle time over windows, which are cut where a blocking call begins or ends. A wait is also charged
-- the time of late launches after it in the same gap, up to the time that the wait blocked the host in addition to its
-- own idle time: without the wait, the host would have launched that much earlier. The earliest such time counts. MPI
-- calls after it would wait for other ranks all the same.
WITH blocking_calls AS MATERIALIZED (
    FROM _held_gaps
),
gaps AS MATERIALIZED (
    FROM _charged_gaps
),
-- The instants at which the windows are cut.
cuts AS (
    SELECT unnest([start_ns, end_ns]) AS start_ns FROM _steady_windows WHERE step IS NOT NULL
    UNION
    SELECT unnest([gap_start_ns, gap_end_ns]) FROM gaps
    UNION
    SELECT unnest([
        greatest(start_ns, gap_start_ns), greatest(call_start_ns, gap_start_ns),
        least(greatest(end_ns, gap_start_ns), gap_end_ns)
    ]) FROM blocking_calls
),
-- The windows inside gaps that blocking calls are in.
gap_windows AS MATERIALIZED (
    SELECT c.start_ns, c.end_ns, g.gpu_id, g.gap_start_ns
    FROM (
        FROM (SELECT start_ns, lead(start_ns) OVER (ORDER BY start_ns) AS end_ns FROM cuts)
        CROSS JOIN (SELECT DISTINCT gpu_id FROM gaps)
    ) AS c
    ASOF JOIN gaps AS g ON g.gpu_id = c.gpu_id AND g.gap_start_ns <= c.start_ns
    WHERE c.start_ns < g.gap_end_ns
),
windows AS MATERIALIZED (
    SELECT DISTINCT start_ns, end_ns FROM gap_windows
),
charged_pieces AS NOT MATERIALIZED (
    FROM _charged_times
),
-- Idle time by window, GPU, cause, and what the host did.
idle_times AS MATERIALIZED (
    SELECT
        p.start_ns, p.gpu_id, p.gap_start_ns, i.cause, i.host, i.idle_ns,
        CASE WHEN p.start_ns < s.end_ns THEN s.step END AS step
    FROM _idle_in('charged_pieces', 'windows') AS i
    JOIN gap_windows AS p ON p.start_ns = i.window_ns AND p.gpu_id = i.gpu_id
    ASOF LEFT JOIN _steady_windows AS s ON s.start_ns <= p.start_ns
),
-- Idle time during a wait or an allocation.
idle_in_calls AS MATERIALIZED (
    SELECT i.*, h.charge, h.process_id, h.thread_id, h.call_start_ns
    FROM (
        SELECT *, CASE cause WHEN 'allocation' THEN cause ELSE 'wait' END AS charge
        FROM idle_times
        WHERE cause IN ('sync', 'copy', 'allocation')
    ) AS i
    ASOF JOIN (
        SELECT *, unnest([start_ns, call_start_ns]) AS from_ns FROM blocking_calls
    ) AS h ON h.gpu_id = i.gpu_id AND h.gap_start_ns = i.gap_start_ns AND h.charge = i.charge
        AND h.from_ns <= i.start_ns
    WHERE i.start_ns < h.end_ns
),
-- Idle time that is due to tracing the nodes of a graph.
tracing AS MATERIALIZED (
    SELECT
        start_ns, gpu_id, host,
        (least(so_far_ns, limit_ns) - least(so_far_ns - idle_ns, limit_ns))::BIGINT AS tracing_ns
    FROM (
        SELECT
            i.*, t.limit_ns,
            sum(i.idle_ns) OVER (
                PARTITION BY gpu_id, gap_start_ns ORDER BY i.start_ns, i.host ROWS UNBOUNDED PRECEDING
            ) AS so_far_ns
        FROM idle_times AS i
        JOIN _traced_graphs AS t USING (gpu_id, gap_start_ns)
        WHERE i.host IN ('launch call', 'launch call in progress')
    )
),
-- The wait in which the GPU ran out of work, and how long it blocked the host beyond its own idle time.
waits_before_late_launches AS (
    SELECT
        h.gpu_id, h.gap_start_ns, h.process_id, h.thread_id, h.call_start_ns, h.end_ns,
        greatest(h.held_ns - coalesce(c.idle_ns, 0), 0) AS limit_ns
    FROM blocking_calls AS h
    LEFT JOIN (
        SELECT gpu_id, process_id, thread_id, call_start_ns, sum(idle_ns) AS idle_ns
        FROM idle_in_calls
        WHERE charge = 'wait'
        GROUP BY ALL
    ) AS c USING (gpu_id, process_id, thread_id, call_start_ns)
    WHERE h.charge = 'wait' AND h.start_ns <= h.dry_ns
    QUALIFY row_number() OVER (PARTITION BY h.gpu_id, h.gap_start_ns ORDER BY h.end_ns DESC, h.call_start_ns DESC) = 1
),
-- An operation that starts long after its launch call has returned waits for something else, such as another process.
late_starts AS (
    SELECT gpu_id, gap_start_ns
    FROM idle_times
    WHERE host = 'launch latency'
    GROUP BY ALL
    HAVING sum(idle_ns) >= 100000
),
-- Time of late launches after a wait, up to limit_ns.
late_after_wait AS (
    SELECT * REPLACE (least(so_far_ns, limit_ns) - least(so_far_ns - idle_ns, limit_ns) AS idle_ns)
    FROM (
        SELECT
            i.* REPLACE (i.idle_ns - coalesce(t.tracing_ns, 0) AS idle_ns), d.process_id, d.thread_id, d.call_start_ns,
            d.limit_ns,
            sum(i.idle_ns - coalesce(t.tracing_ns, 0)) OVER (
                PARTITION BY i.gpu_id, i.gap_start_ns ORDER BY i.start_ns, i.host ROWS UNBOUNDED PRECEDING
            ) AS so_far_ns
        FROM idle_times AS i
        JOIN waits_before_late_launches AS d
            ON d.gpu_id = i.gpu_id AND d.gap_start_ns = i.gap_start_ns AND i.start_ns >= d.end_ns
        LEFT JOIN tracing AS t ON t.gpu_id = i.gpu_id AND t.start_ns = i.start_ns AND t.host = i.host
        WHERE i.cause = 'launch' AND i.host NOT IN ('launch call in progress', 'MPI calls')
            AND NOT (i.host = 'launch latency' AND (i.gpu_id, i.gap_start_ns) IN (FROM late_starts))
    )
),
charges AS (
    SELECT step, gpu_id, charge, process_id, thread_id, call_start_ns, gap_start_ns, cause, host, idle_ns
    FROM idle_in_calls
    UNION ALL
    SELECT step, gpu_id, 'wait', process_id, thread_id, call_start_ns, gap_start_ns, cause, host, idle_ns
    FROM late_after_wait
    UNION ALL
    SELECT i.step, i.gpu_id, 'tracing', NULL, NULL, NULL, i.gap_start_ns, i.cause, i.host, t.tracing_ns
    FROM idle_times AS i
    JOIN tracing AS t ON t.gpu_id = i.gpu_id AND t.start_ns = i.start_ns AND t.host = i.host
)
SELECT
    step, gpu_id, charge, process_id, thread_id, call_start_ns, gap_start_ns, cause, host::VARCHAR AS host,
    sum(idle_ns)::BIGINT AS idle_ns
FROM charges
WHERE idle_ns > 0
GROUP BY ALL;
