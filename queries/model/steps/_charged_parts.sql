/*
description = """The rows of `idle_charges` that a budget moves to another part: the time after waits, and what tracing
    graphs by node takes."""
[columns]
step = "The steady step, as in `idle_charges`"
cause = "What `gpu_idle` calls this time"
host = "What the host did in this time, as `gpu_idle` calls it"
part = "The part of the budget that it belongs to: profiler, sync, or copy for a blocking copy to the GPU"
part_host = "What it is called there: D2H copy, wait, blocking copies, or tracing of graph nodes"
idle_ns = "How long"
*/
SELECT
    c.step, c.gpu_id, c.cause, c.host,
    CASE WHEN c.charge = 'tracing' THEN 'profiler' WHEN w.waited_for = 'blocking copies' THEN 'copy' ELSE 'sync' END
        AS part,
    CASE WHEN c.charge = 'tracing' THEN 'tracing of graph nodes' ELSE w.waited_for END AS part_host,
    c.idle_ns
FROM idle_charges AS c
LEFT JOIN (
    SELECT
        'wait' AS charge, process_id, thread_id, call_start_ns,
        CASE WHEN copy_kind = 'D2H' THEN 'D2H copy' WHEN is_copy THEN 'blocking copies' ELSE 'wait' END AS waited_for
    FROM waits
) AS w ON w.charge = c.charge AND w.process_id = c.process_id AND w.thread_id = c.thread_id
    AND w.call_start_ns = c.call_start_ns
WHERE c.charge <> 'allocation';
