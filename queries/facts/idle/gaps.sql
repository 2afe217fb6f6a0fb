-- A gap belongs to the operation that ends it: if its launch call began before the gap, the operation was launched in time,
-- else the host was late. Of operations and calls with some correlation ids; those without one are with the first.
INSERT INTO internal.idle_found BY NAME
WITH launch_calls AS (
    SELECT
        call_of(correlation_id, process_id) AS call, thread_of(thread_id, process_id) AS thread, start_ns AS call_ns,
        end_ns AS returned_ns
    FROM _host_activity
    WHERE kind = 'api' AND ($from_id IS NULL OR correlation_id >= $from_id) AND ($to_id IS NULL OR correlation_id < $to_id)
),
ended AS (
    SELECT
        r.*, b.is_read,
        coalesce((r.start_ns, r.call) IN (SELECT (start_ns, call) FROM _migrations), false) AS is_migration
    FROM _gpu_reach AS r
    LEFT JOIN _blocking_copies AS b ON call_of(b.correlation_id, b.process_id) = r.call
    WHERE r.start_ns > r.running_end_ns
        AND ($from_id IS NULL OR r.call >= call_of($from_id::BIGINT, 0))
        AND ($to_id IS NULL OR r.call < call_of($to_id::BIGINT, 0) OR ($from_id IS NULL AND r.call IS NULL))
)
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
FROM ended AS g
LEFT JOIN launch_calls AS c ON c.call = g.call
