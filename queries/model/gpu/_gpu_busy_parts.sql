/*
description = """What each operation adds to the busy time of its GPU: `gpu_busy` in smaller pieces, disjoint, cut to
    the scope's own time."""
[columns]
start_ns = "When the operation started, or the operations before it ended if that was later"
end_ns = "When the operation ended"
duration_ns = "end_ns - start_ns"
*/
-- The part of an operation after the latest end so far. These parts do not overlap, and adding them up takes one pass;
-- a union would take a second one.
WITH busy_parts AS (
    SELECT gpu_id, greatest(start_ns, coalesce(running_end_ns, start_ns)) AS start_ns, end_ns
    FROM _gpu_reach
    WHERE running_end_ns IS NULL OR end_ns > running_end_ns
)
SELECT gpu_id, start_ns, end_ns, end_ns - start_ns AS duration_ns
FROM in_scope('busy_parts');
