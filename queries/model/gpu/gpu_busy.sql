/*
description = """When each GPU was busy: the union of its kernels, copies, memsets and whole-graph launches as disjoint
    intervals, cut to the scope's own time."""
[columns]
start_ns = "When the GPU became busy"
end_ns = "When the GPU became idle"
duration_ns = "end_ns - start_ns"
*/
-- An interval begins where an operation starts after the latest end so far (not after the end of the previous row:
-- operations overlap). It ends at the latest end before the next interval begins.
WITH starts AS (
    SELECT gpu_id, start_ns, running_end_ns FROM _gpu_reach WHERE running_end_ns IS NULL OR start_ns > running_end_ns
),
busy AS (
    SELECT
        gpu_id, start_ns,
        coalesce(lead(running_end_ns) OVER (PARTITION BY gpu_id ORDER BY start_ns), last_ns) AS end_ns
    FROM starts
    JOIN (SELECT gpu_id, max(end_ns) AS last_ns FROM _gpu_work GROUP BY gpu_id) USING (gpu_id)
)
SELECT gpu_id, start_ns, end_ns, end_ns - start_ns AS duration_ns
FROM in_scope('busy');
