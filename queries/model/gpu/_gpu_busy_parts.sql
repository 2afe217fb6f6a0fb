-- The part of an operation after the latest end so far. These parts do not overlap, and adding them up takes one pass;
-- a union would take a second one.
CREATE VIEW _gpu_busy_parts AS
WITH busy_parts AS (
    SELECT gpu_id, greatest(start_ns, coalesce(running_end_ns, start_ns)) AS start_ns, end_ns
    FROM _gpu_reach
    WHERE running_end_ns IS NULL OR end_ns > running_end_ns
)
SELECT gpu_id, start_ns, end_ns, end_ns - start_ns AS duration_ns
FROM in_scope('busy_parts');

COMMENT ON VIEW _gpu_busy_parts IS
    'What each operation adds to the busy time of its GPU: `gpu_busy` in smaller pieces, disjoint, cut to the '
    'scope''s own time.';
COMMENT ON COLUMN _gpu_busy_parts.gpu_id IS
    'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _gpu_busy_parts.start_ns IS 'When it started, or the operations before it ended if that was later';
COMMENT ON COLUMN _gpu_busy_parts.end_ns IS 'When it ended';
COMMENT ON COLUMN _gpu_busy_parts.duration_ns IS 'end_ns - start_ns';
