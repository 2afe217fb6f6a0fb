-- A gap belongs to the operation that ends it: if its launch call began before the gap, the operation was launched in time,
-- else the host was late. Before a GPU's first operation and after its last one there is no gap but the rest of the wall.
CREATE VIEW _idle_gaps AS
WITH launch_calls AS (
    SELECT
        call_of(correlation_id, process_id) AS call, thread_of(thread_id, process_id) AS thread, start_ns AS call_ns,
        end_ns AS returned_ns
    FROM _host_activity
    WHERE kind = 'api'
),
between_operations AS (
    SELECT
        g.gpu_id, g.running_end_ns AS start_ns, g.start_ns AS end_ns, c.thread, c.call_ns, c.returned_ns,
        coalesce(c.call IS NOT NULL AND g.is_read IS NOT NULL, false) AS is_copy,
        CASE
            WHEN g.is_migration AND c.call_ns IS NULL THEN idle_host('managed memory')
            WHEN g.is_same_call THEN idle_host('same launch call')
            WHEN c.call_ns IS NULL THEN idle_host('not in the trace')
            WHEN c.returned_ns <= g.running_end_ns THEN idle_host('launched before')
            WHEN c.call_ns < g.running_end_ns AND g.is_read THEN idle_host('blocking copies')
            WHEN c.call_ns < g.running_end_ns THEN idle_host('launch call under way')
            ELSE idle_host('late')
        END AS host
    FROM (
        SELECT
            r.*, b.is_read,
            coalesce((r.start_ns, r.call) IN (SELECT (start_ns, call) FROM _migrations), false) AS is_migration
        FROM _gpu_reach AS r
        LEFT JOIN _blocking_copies AS b ON call_of(b.correlation_id, b.process_id) = r.call
        WHERE r.start_ns > r.running_end_ns
    ) AS g
    LEFT JOIN launch_calls AS c ON c.call = g.call
),
edges AS (
    SELECT gpu_id, unnest([first_ns, end_ns]) AS start_ns, unnest([start_ns, last_ns]) AS end_ns,
        unnest([idle_host('before the first operation'), idle_host('after the last operation')]) AS host
    FROM (SELECT gpu_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM _gpu_work GROUP BY gpu_id)
    CROSS JOIN (SELECT min(start_ns) AS first_ns, max(end_ns) AS last_ns FROM wall)
)
SELECT gpu_id, start_ns, end_ns, thread, call_ns, returned_ns, is_copy, host FROM between_operations
UNION ALL
SELECT gpu_id, start_ns, end_ns, NULL, NULL, NULL, NULL, host FROM edges WHERE end_ns > start_ns;

COMMENT ON VIEW _idle_gaps IS 'When each GPU was idle over the wall time of the whole trace, with the launch call of the operation that ended it: what `gpu_idle` is made of.';
COMMENT ON COLUMN _idle_gaps.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _idle_gaps.start_ns IS 'When the GPU became idle';
COMMENT ON COLUMN _idle_gaps.end_ns IS 'When the next operation started';
COMMENT ON COLUMN _idle_gaps.thread IS 'Thread that launched it: its process id times 16,777,216, and its thread id';
COMMENT ON COLUMN _idle_gaps.call_ns IS 'When it entered the launch call';
COMMENT ON COLUMN _idle_gaps.returned_ns IS 'When the call returned';
COMMENT ON COLUMN _idle_gaps.is_copy IS 'Whether the call is one of `_blocking_copies`';
COMMENT ON COLUMN _idle_gaps.host IS 'late; or why the host was not: same launch call, launched before, launch call under way, managed memory (pages moved without a call), blocking copies (the call is a copy into pageable host memory, and was in progress), not in the trace, before the first operation, after the last operation';
