/*
description = "The rows of `_idle_time` that are in gaps of `_charged_gaps`."
stored = true
columns_of = "_idle_time"
*/
-- This is a statement of its own. If a larger statement uses these rows, DuckDB 1.5.5 does not restrict the scan of all
-- gaps to these few, which takes ten times as long.
WITH gaps AS MATERIALIZED (
    FROM _charged_gaps
),
-- The profiler cuts a gap where it blocked the thread. Each piece after the first one is such a time, or follows one.
profiler_times AS MATERIALIZED (
    SELECT p.gpu_id, p.start_ns, p.end_ns
    FROM (FROM _idle_time WHERE host = 'profiler') AS p
    ASOF JOIN gaps AS g ON g.gpu_id = p.gpu_id AND g.gap_start_ns <= p.start_ns
    WHERE p.start_ns < g.gap_end_ns
),
piece_starts AS MATERIALIZED (
    SELECT gpu_id, gap_start_ns AS start_ns FROM gaps
    UNION ALL
    SELECT gpu_id, unnest([start_ns, end_ns]) FROM profiler_times
)
SELECT
    gpu_id, start_ns, end_ns, thread, call_ns, returned_ns, is_copy, host, sync_ns, copy_ns, alloc_ns, mpi_ns, api_ns,
    start_ns AS gap_ns, end_ns AS gap_end_ns
FROM _idle_time SEMI JOIN piece_starts USING (gpu_id, start_ns);
