-- Gaps are cut where the profiler held the launching thread up. Statement by statement, so that DuckDB plans each by how
-- many rows there are. First, when the profiler held each thread up, and the time between.
CREATE OR REPLACE TABLE internal.idle_held AS
SELECT thread, greatest(start_ns, coalesce(running_end_ns, start_ns)) AS start_ns, end_ns
FROM (
    SELECT thread_of(thread_id, process_id) AS thread, start_ns, end_ns, max(end_ns) OVER (
        PARTITION BY thread_of(thread_id, process_id) ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS running_end_ns
    FROM _host_activity
    WHERE kind = 'profiler'
)
WHERE end_ns > greatest(start_ns, coalesce(running_end_ns, start_ns));

CREATE OR REPLACE TABLE internal.idle_turns AS
SELECT thread, start_ns, end_ns, true AS is_held FROM internal.idle_held
UNION ALL
SELECT thread, end_ns, coalesce(lead(start_ns) OVER (PARTITION BY thread ORDER BY start_ns), 9223372036854775807), false
FROM internal.idle_held
UNION ALL
SELECT thread, -9223372036854775807, min(start_ns), false FROM internal.idle_held GROUP BY thread;

-- Few gaps touch these: none but those in the same slice of a millisecond, or longer than one.
CREATE OR REPLACE TABLE internal.idle_slices AS
SELECT DISTINCT unnest(range(start_ns // 1000000, end_ns // 1000000 + 1)) AS slice FROM internal.idle_held;

CREATE OR REPLACE TABLE internal.idle_near AS
SELECT g.*, t.end_ns AS turn_end_ns, t.is_held
FROM (
    FROM internal.idle_found
    WHERE host = idle_host('late') AND thread IN (SELECT thread FROM internal.idle_held)
        AND (end_ns - start_ns >= 1000000 OR start_ns // 1000000 IN (FROM internal.idle_slices) OR end_ns // 1000000 IN (FROM internal.idle_slices))
) AS g
ASOF JOIN internal.idle_turns AS t ON t.thread = g.thread AND t.start_ns <= g.start_ns
WHERE t.is_held OR g.end_ns > t.end_ns;

DELETE FROM internal.idle_found AS g USING internal.idle_near AS n WHERE g.host = idle_host('late') AND n.gpu_id = g.gpu_id AND n.start_ns = g.start_ns;

INSERT INTO internal.idle_found BY NAME
SELECT * EXCLUDE (turn_end_ns, is_held) REPLACE (
    least(end_ns, turn_end_ns) AS end_ns, CASE WHEN is_held THEN idle_host('profiler') ELSE host END AS host
)
FROM internal.idle_near
UNION ALL BY NAME
SELECT g.* EXCLUDE (turn_end_ns, is_held, slice) REPLACE (
    t.start_ns AS start_ns, least(g.end_ns, t.end_ns) AS end_ns, CASE WHEN t.is_held THEN idle_host('profiler') ELSE g.host END AS host
)
FROM (
    SELECT *, unnest(range(turn_end_ns // 1000000, end_ns // 1000000 + 1)) AS slice FROM internal.idle_near WHERE end_ns > turn_end_ns
) AS g
JOIN internal.idle_turns AS t ON t.thread = g.thread AND t.start_ns // 1000000 = g.slice
WHERE t.start_ns >= g.turn_end_ns AND t.start_ns < g.end_ns;

INSERT INTO facts.idle_time BY NAME
SELECT *, 0 AS sync_ns, 0 AS copy_ns, 0 AS alloc_ns, 0 AS api_ns FROM internal.idle_found WHERE host <> idle_host('late');

-- Threads are laid one after the other on a single line of time, from the first late gap to the last launch call.
CREATE OR REPLACE TABLE internal.idle_lanes AS
SELECT thread, from_ns, to_ns, (row_number() OVER (ORDER BY thread) - 1) * (to_ns - from_ns + 1) - from_ns AS shift_ns
FROM (SELECT DISTINCT thread FROM internal.idle_found WHERE host = idle_host('late'))
CROSS JOIN (
    SELECT min(start_ns) AS from_ns, max(greatest(start_ns, least(call_ns, end_ns))) AS to_ns FROM internal.idle_found WHERE host = idle_host('late')
);

-- The calls that wait or allocate, by name.
CREATE OR REPLACE TABLE internal.idle_hosts AS
SELECT name_id, CASE call_group WHEN 'sync' THEN 0 ELSE 2 END AS host
FROM _api_names
WHERE call_group IN ('sync', 'alloc', 'free');

-- The API calls of the threads that were late, as far as they lie on that line, and what each does: 0 waits, 1 copies,
-- 2 allocates, 3 all else. A call may be inside another one. No join for the names: DuckDB would hash all calls.
CREATE OR REPLACE TABLE internal.idle_calls AS
SELECT
    greatest(a.start_ns, l.from_ns) + l.shift_ns AS line_start, least(a.end_ns, l.to_ns) + l.shift_ns AS line_end,
    CASE
        WHEN call_of(a.correlation_id, a.process_id) IN (SELECT call_of(correlation_id, process_id) FROM _blocking_copies) THEN 1
        WHEN a.name_id IN (SELECT name_id FROM internal.idle_hosts WHERE host = 0) THEN 0
        WHEN a.name_id IN (SELECT name_id FROM internal.idle_hosts WHERE host = 2) THEN 2
        ELSE 3
    END::UTINYINT AS host
FROM (FROM _host_activity WHERE kind = 'api' AND end_ns > start_ns) AS a
JOIN internal.idle_lanes AS l ON l.thread = thread_of(a.thread_id, a.process_id)
WHERE a.end_ns > l.from_ns AND a.start_ns < l.to_ns;

DROP TABLE internal.idle_held;

DROP TABLE internal.idle_turns;

DROP TABLE internal.idle_slices;

DROP TABLE internal.idle_near;

DROP TABLE internal.idle_hosts;
