-- Fills what `tables.sql` creates. Statement by statement, so that DuckDB plans each by how many rows there are.
INSERT INTO facts.idle_time BY NAME FROM _idle_gaps;

-- When the profiler held each thread up, and the time between.
CREATE OR REPLACE TABLE internal.idle_held AS
SELECT thread, greatest(start_ns, coalesce(running_end_ns, start_ns)) AS start_ns, end_ns
FROM (
    SELECT process_id << 24 | thread_id AS thread, start_ns, end_ns, max(end_ns) OVER (
        PARTITION BY process_id << 24 | thread_id ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
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
    FROM facts.idle_time
    WHERE host = 'late' AND thread IN (SELECT thread FROM internal.idle_held)
        AND (end_ns - start_ns >= 1000000 OR start_ns // 1000000 IN (FROM internal.idle_slices) OR end_ns // 1000000 IN (FROM internal.idle_slices))
) AS g
ASOF JOIN internal.idle_turns AS t ON t.thread = g.thread AND t.start_ns <= g.start_ns
WHERE t.is_held OR g.end_ns > t.end_ns;

DELETE FROM facts.idle_time AS g USING internal.idle_near AS n WHERE g.host = 'late' AND n.gpu_id = g.gpu_id AND n.start_ns = g.start_ns;

INSERT INTO facts.idle_time BY NAME
SELECT * EXCLUDE (turn_end_ns, is_held) REPLACE (
    least(end_ns, turn_end_ns) AS end_ns, CASE WHEN is_held THEN 'profiler' ELSE host END AS host
)
FROM internal.idle_near
UNION ALL BY NAME
SELECT g.* EXCLUDE (turn_end_ns, is_held, slice) REPLACE (
    t.start_ns AS start_ns, least(g.end_ns, t.end_ns) AS end_ns, CASE WHEN t.is_held THEN 'profiler' ELSE g.host END AS host
)
FROM (
    SELECT *, unnest(range(turn_end_ns // 1000000, end_ns // 1000000 + 1)) AS slice FROM internal.idle_near WHERE end_ns > turn_end_ns
) AS g
JOIN internal.idle_turns AS t ON t.thread = g.thread AND t.start_ns // 1000000 = g.slice
WHERE t.start_ns >= g.turn_end_ns AND t.start_ns < g.end_ns;

-- A late thread's time before the call is what it did then. Threads, and the GPUs they launch on, are laid one after the
-- other on a single line of time, their lanes: to sort by one number takes half as long as by two.
CREATE OR REPLACE TABLE internal.idle_lanes AS
SELECT
    (row_number() OVER (ORDER BY gpu_id, thread))::INTEGER AS lane, gpu_id, thread, from_ns, to_ns,
    (lane - 1) * (to_ns - from_ns + 1) - from_ns AS shift_ns
FROM (SELECT DISTINCT gpu_id, thread FROM facts.idle_time WHERE host = 'late')
CROSS JOIN (
    SELECT min(start_ns) AS from_ns, max(least(call_ns, end_ns)) AS to_ns FROM facts.idle_time WHERE host = 'late' AND call_ns > start_ns
)
WHERE to_ns > from_ns;

CREATE OR REPLACE VIEW internal.idle_before AS
SELECT t.start_ns + l.shift_ns AS start_ns, least(t.call_ns, t.end_ns) + l.shift_ns AS end_ns, l.lane
FROM facts.idle_time AS t
JOIN internal.idle_lanes AS l ON l.gpu_id = t.gpu_id AND l.thread = t.thread
WHERE t.host = 'late' AND t.call_ns > t.start_ns;

CREATE OR REPLACE TABLE internal.idle_hosts AS
SELECT name_id, CASE
    WHEN call_group = 'sync' THEN 'sync calls'
    WHEN call_group = 'copy' AND name NOT LIKE '%Async%' THEN 'blocking copies'
    WHEN call_group IN ('alloc', 'free') THEN 'allocation'
    ELSE 'API calls'
END::ENUM ('sync calls', 'blocking copies', 'allocation', 'API calls') AS host
FROM _api_names;

-- These block whatever their calls are named.
CREATE OR REPLACE TABLE internal.idle_reads AS
SELECT correlation_id, process_id FROM _pageable_reads;

-- For each call the first piece of that time that ends after the call began, if they meet.
CREATE OR REPLACE TABLE internal.idle_met AS
SELECT c.start_ns, c.end_ns, c.host, b.start_ns AS piece_ns, b.end_ns AS piece_end_ns, b.lane
FROM (
    SELECT
        greatest(a.start_ns, l.from_ns) + l.shift_ns AS start_ns, least(a.end_ns, l.to_ns) + l.shift_ns AS end_ns,
        CASE WHEN (a.correlation_id, a.process_id) IN (FROM internal.idle_reads) THEN 'blocking copies' ELSE coalesce(n.host, 'API calls') END AS host
    FROM _host_activity AS a
    JOIN internal.idle_lanes AS l ON l.thread = a.process_id << 24 | a.thread_id
    LEFT JOIN internal.idle_hosts AS n ON n.name_id = a.name_id
    WHERE a.kind = 'api' AND a.end_ns > a.start_ns AND a.end_ns > l.from_ns AND a.start_ns < l.to_ns
) AS c
ASOF JOIN internal.idle_before AS b ON b.end_ns > c.start_ns
WHERE c.end_ns > b.start_ns;

-- The few that go on beyond that piece meet those that begin before the call ends.
INSERT INTO internal.idle_met BY NAME
SELECT m.start_ns, m.end_ns, m.host, b.start_ns AS piece_ns, b.end_ns AS piece_end_ns, b.lane
FROM (
    SELECT *, unnest(range(piece_end_ns // 1000000, end_ns // 1000000 + 1)) AS slice FROM internal.idle_met WHERE end_ns > piece_end_ns
) AS m
JOIN internal.idle_before AS b ON b.start_ns // 1000000 = m.slice
WHERE b.start_ns >= m.piece_end_ns AND b.start_ns < m.end_ns;

-- A call inside another one does not count: what counts is after the latest end so far, in the order in which calls begin.
INSERT INTO facts.idle_calls BY NAME
SELECT
    l.gpu_id, greatest(m.start_ns, coalesce(m.running_end_ns, m.start_ns)) - l.shift_ns AS start_ns, m.end_ns - l.shift_ns AS end_ns, m.host
FROM (
    SELECT
        lane, host, greatest(start_ns, piece_ns) AS start_ns, least(end_ns, piece_end_ns) AS end_ns,
        max(least(end_ns, piece_end_ns)) OVER (
            ORDER BY start_ns, end_ns DESC, piece_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS running_end_ns
    FROM internal.idle_met
) AS m
JOIN internal.idle_lanes AS l USING (lane)
WHERE m.end_ns > greatest(m.start_ns, coalesce(m.running_end_ns, m.start_ns));

DROP VIEW internal.idle_before;

DROP TABLE internal.idle_held;

DROP TABLE internal.idle_turns;

DROP TABLE internal.idle_slices;

DROP TABLE internal.idle_near;

DROP TABLE internal.idle_lanes;

DROP TABLE internal.idle_hosts;

DROP TABLE internal.idle_reads;

DROP TABLE internal.idle_met;
