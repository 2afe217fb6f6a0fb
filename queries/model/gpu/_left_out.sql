/*
description = """One row where a scope by --nvtx leaves out what other threads launched meanwhile; no row where it
    leaves nothing out."""
stored = true
[columns]
threads = "The other threads"
gpu_ns = "GPU work that they launched"
gpu_pct = "Share of this work in all GPU work that was launched meanwhile"
flag = "The flag that leaves it out"
*/
-- The calls of threads without a range of --nvtx, while a range is open in their process. Their work is in no range,
-- such as PyTorch's backward pass.
WITH other_calls AS (
    SELECT pid_of(c.globalTid) AS process_id, tid_of(c.globalTid) AS thread_id, c.correlationId AS correlation_id
    FROM unscoped.CUPTI_ACTIVITY_KIND_RUNTIME AS c
    ASOF JOIN internal.scope_windows AS w ON w.start_ns <= c.start
    WHERE c.start < w.end_ns AND pid_of(c.globalTid) IN (SELECT process_id FROM internal.scope_ranges)
        AND (pid_of(c.globalTid), tid_of(c.globalTid)) NOT IN (
            SELECT (process_id, thread_id) FROM internal.scope_ranges
        )
        AND c.correlationId IS NOT NULL AND c.eventClass IS DISTINCT FROM 67
),
-- GPU work of these calls.
left_out_work AS (
    SELECT sum(w.end_ns - w.start_ns)::DOUBLE AS gpu_ns, count(DISTINCT o.thread_id) AS threads
    FROM _gpu_work AS w SEMI JOIN other_calls USING (process_id, correlation_id)
    LEFT JOIN (
        SELECT process_id, correlation_id, min(thread_id) AS thread_id FROM other_calls GROUP BY ALL
    ) AS o USING (process_id, correlation_id)
)
SELECT
    w.threads, w.gpu_ns, 100 * w.gpu_ns / (w.gpu_ns + k.kept_ns) AS gpu_pct,
    if(s.is_phase, '--phase', '--nvtx') AS flag
FROM left_out_work AS w, (SELECT coalesce(sum(duration_ns), 0)::DOUBLE AS kept_ns FROM gpu_ops) AS k, scope AS s
WHERE w.gpu_ns > 0;
