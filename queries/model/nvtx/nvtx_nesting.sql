/*
description = """Ranges with their place in the nesting of their thread, across NVTX domains. Start/end ranges do not
    nest."""
stored = true
[columns]
range_id = "Number of the range within this trace and scope"
parent_id = "The innermost range, of any domain, that is open from its start to its end; NULL at the top"
depth = "1 at the top"
path = "Names from the top down, joined by /"
name = "Text of the range"
domain = "NVTX domain of the range; empty for the default domain"
process_id = "Operating system's process id"
thread_id = "Thread that opened it"
start_ns = "When the range was opened"
end_ns = "When the range was closed; NULL when the capture ended first"
duration_ns = "end_ns - start_ns; 0 where it ends before it starts"
style = "push/pop (nested, one thread) or start/end (free)"
*/
-- The parent is the innermost range, of any domain, that is open from start to end: a path names only what surrounds an
-- entire range. In each other domain of the thread, the search begins at the range that is open at the start, and goes
-- outwards as long as that range ends too early. Of ranges with equal times, the lower number is the outer range.
WITH RECURSIVE stacks AS MATERIALIZED (
    FROM _nvtx_stacks
),
-- Each range with the other domains of its thread.
searches AS (
    SELECT s.*, t.domain_id AS other_id
    FROM stacks AS s
    JOIN (SELECT DISTINCT process_id, thread_id, domain_id FROM stacks) AS t
        ON t.process_id = s.process_id AND t.thread_id = s.thread_id AND t.domain_id <> s.domain_id
),
-- Ranges of other domains that are open at the start of a range, from the innermost outwards.
outer_candidates AS (
    SELECT s.range_id, s.close_ns, p.range_id AS outer_id
    FROM searches AS s
    ASOF JOIN _nvtx_domain_places AS p
        ON p.process_id = s.process_id AND p.thread_id = s.thread_id AND p.domain_id = s.other_id
            AND p.start_ns <= s.start_ns
    UNION ALL
    SELECT a.range_id, a.close_ns, o.outer_id
    FROM outer_candidates AS a JOIN stacks AS o ON o.range_id = a.outer_id
    WHERE o.close_ns < a.close_ns OR o.range_id > a.range_id
),
ranges_with_parent AS MATERIALIZED (
    SELECT s.*, greatest(s.outer_id, a.outer_id) AS parent_id
    FROM stacks AS s
    LEFT JOIN (
        SELECT a.range_id, max(a.outer_id) AS outer_id
        FROM outer_candidates AS a JOIN stacks AS o ON o.range_id = a.outer_id
        WHERE o.close_ns >= a.close_ns AND o.range_id < a.range_id
        GROUP BY a.range_id
    ) AS a USING (range_id)
),
paths AS (
    SELECT range_id, 1::BIGINT AS depth, name AS path FROM ranges_with_parent WHERE parent_id IS NULL
    UNION ALL
    SELECT c.range_id, p.depth + 1, p.path || '/' || c.name FROM ranges_with_parent AS c
    JOIN paths AS p ON p.range_id = c.parent_id
)
SELECT
    range_id, parent_id, depth, path, name, domain, process_id, thread_id, start_ns, end_ns,
    duration(start_ns, end_ns) AS duration_ns, 'push/pop' AS style
FROM ranges_with_parent JOIN paths USING (range_id)
UNION ALL
SELECT
    range_id, NULL, 1, name, name, domain, process_id, thread_id, start_ns, end_ns, duration(start_ns, end_ns),
    'start/end'
FROM _free_ranges;
