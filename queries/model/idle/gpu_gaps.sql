/*
description = """When each GPU was idle between two operations: all of its time from first to last operation that is not
    in `gpu_busy`, cut to the scope's own time."""
[columns]
start_ns = "When the GPU became idle"
end_ns = "When the next operation started"
duration_ns = "end_ns - start_ns"
running_end_ns = "When the operations before it ended: start_ns, unless the scope cut the gap"
next_ns = "When the operation after it started: end_ns, unless the scope cut the gap"
*/
-- A gap precedes each operation that starts after the latest end so far. One pass over the operations finds these,
-- which is much cheaper than searching between the intervals of `gpu_busy`.
WITH gaps AS (
    SELECT gpu_id, running_end_ns AS start_ns, start_ns AS end_ns, running_end_ns, start_ns AS next_ns
    FROM _gpu_reach
    WHERE start_ns > running_end_ns
)
SELECT gpu_id, start_ns, end_ns, end_ns - start_ns AS duration_ns, running_end_ns, next_ns
FROM in_scope('gaps');
