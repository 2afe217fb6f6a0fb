-- The causes of idle time in each of some windows (start_ns, end_ns; disjoint), by the rules of `_idle_of`, of gaps that have
-- the columns of `_idle_time`. A gap finds its window by the slot of time in which both begin, some eight to a window: an
-- ASOF join would sort all gaps, and keep them. Those that an edge of a window cuts are few, and only their slots among the
-- windows count: a gap may last a thousand times as long as these. What reads all gaps is not materialized: DuckDB would take
-- it to be small, and hash it.
CREATE MACRO _idle_in(idle_gaps, windows) AS TABLE
WITH w AS MATERIALIZED (
    SELECT start_ns, end_ns FROM query_table(windows) WHERE end_ns > start_ns
),
line AS MATERIALIZED (
    SELECT greatest(1, (max(end_ns) - min(start_ns)) // (8 * count(*))) AS slot_ns, min(start_ns) AS from_ns, max(end_ns) AS until_ns
    FROM w HAVING count(*) > 0
),
gaps AS NOT MATERIALIZED (
    SELECT g.*, greatest(start_ns, from_ns) // slot_ns AS slot, least(end_ns, until_ns) // slot_ns AS last_slot
    FROM query_table(idle_gaps) AS g
    CROSS JOIN line
),
whole AS (
    SELECT g.* EXCLUDE (slot, last_slot), w.start_ns AS window_ns
    FROM gaps AS g
    JOIN (SELECT *, unnest(range(start_ns // slot_ns, end_ns // slot_ns + 1)) AS slot FROM w CROSS JOIN line) AS w USING (slot)
    WHERE g.start_ns >= w.start_ns AND g.end_ns <= w.end_ns
),
edges AS (
    SELECT at_ns, at_ns // slot_ns AS slot
    FROM (SELECT unnest([start_ns, end_ns]) AS at_ns FROM w) CROSS JOIN line
),
edged AS (
    SELECT g.* EXCLUDE (slot, last_slot)
    FROM (
        FROM gaps WHERE last_slot = slot
        UNION ALL
        SELECT * REPLACE (unnest(range(slot, last_slot + 1)) AS slot) FROM gaps WHERE last_slot > slot
    ) AS g
    JOIN edges AS e USING (slot)
    WHERE g.start_ns < e.at_ns AND g.end_ns > e.at_ns
),
to_cut AS (
    SELECT DISTINCT * FROM edged
),
cut AS MATERIALIZED (
    FROM cut_to('to_cut', windows)
),
pieces AS (
    FROM whole UNION ALL FROM cut
)
SELECT gpu_id, window_ns, cause, host, idle_ns
FROM _idle_of('pieces', 'cut');
