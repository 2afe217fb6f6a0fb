/*
description = """The gaps that a CUDA graph ended which was traced by its nodes, and what that cost its launch call at
    most."""
stored = true
needs = "_api_names WHERE call_group = 'graph launch'"
[columns]
gap_start_ns = "When the gap began, in the scope"
gap_end_ns = "When the gap ended, in the scope"
limit_ns = "Half a microsecond for each kernel of the graph"
*/
-- Tracing a graph by its nodes adds half a microsecond per kernel to the launch call of the graph. On an H200 it was
-- 0.57 µs, where the same call took 0.1 µs per kernel if the graph was traced without its nodes. This time is
-- attributed to the profiler.
SELECT g.gpu_id::BIGINT AS gpu_id, g.start_ns AS gap_start_ns, g.end_ns AS gap_end_ns, max(k.tracing_ns) AS limit_ns
FROM gpu_gaps AS g
JOIN (
    SELECT gpu_of(k.process_id, k.device_id) AS gpu_id, min(k.start_ns) AS start_ns, 500 * count(*) AS tracing_ns
    FROM kernel_events AS k
    SEMI JOIN (FROM api_calls WHERE call_group = 'graph launch') AS c ON c.process_id = k.process_id
        AND c.correlation_id = k.correlation_id
    GROUP BY gpu_of(k.process_id, k.device_id), k.process_id, k.correlation_id
) AS k ON k.gpu_id = g.gpu_id AND k.start_ns = g.next_ns
GROUP BY ALL;
