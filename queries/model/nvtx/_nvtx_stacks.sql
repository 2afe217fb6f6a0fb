/*
description = "Push/pop ranges as they are nested within their thread and domain: what `nvtx_nesting` is made of."
stored = true
[columns]
range_id = "Numbers the ranges, by thread and time, outer ones first"
outer_id = "The innermost range of the same domain around it; NULL for none"
process_id = "Operating system's process id"
thread_id = "Operating system's thread id"
domain_id = "Number of the domain in its process, 0 for the default domain"
start_ns = "When the range was opened"
end_ns = "When the range was closed; NULL if it was open at the end of the capture"
close_ns = "end_ns for sorting: later than all for an open range, never before start_ns"
name = "The range's text"
domain = "Name of its domain; empty for the default domain"
*/
-- NVTX has one stack per thread and domain: the last pushed range is popped first. Sorted by time, the number of open
-- ranges is the depth, and the parent of a range is the last range that was pushed one level up. At the same instant,
-- ranges that end close before others open, and outer ranges open before inner ones. A range of length 0 opens last and
-- closes at once, so that nothing is inside it.
WITH ranges AS (
    SELECT
        row_number() OVER (
            ORDER BY process_id, thread_id, start_ns, close_ns DESC, name, domain, domain_id, end_ns
        ) AS range_id,
        *
    FROM (
        SELECT
            process_id, thread_id, coalesce(domain_id, 0) AS domain_id, start_ns, end_ns, name, domain,
            greatest(start_ns, coalesce(end_ns, 9223372036854775807)) AS close_ns
        FROM nvtx_ranges
        WHERE style = 'push/pop'
    )
),
-- Two events for each range: the push, and the pop.
events AS (
    SELECT *, start_ns AS at_ns, 1 AS step, 1 AS turn, -close_ns AS order_ns, range_id AS order_id FROM ranges
    UNION ALL
    SELECT
        *, close_ns, -1, CASE WHEN close_ns > start_ns THEN 0 ELSE 1 END, -start_ns,
        CASE WHEN close_ns > start_ns THEN -range_id ELSE range_id END
    FROM ranges
),
-- The pushes, each with its depth.
pushes AS (
    SELECT *, row_number() OVER along AS mark, sum(step) OVER along AS depth
    FROM events
    WINDOW along AS (
        PARTITION BY process_id, thread_id, domain_id
    ORDER BY at_ns, turn, order_ns, order_id, step DESC ROWS UNBOUNDED PRECEDING
    )
    QUALIFY step = 1
)
SELECT
    c.range_id, CASE WHEN p.close_ns >= c.close_ns THEN p.range_id END AS outer_id,
    c.process_id, c.thread_id, c.domain_id, c.start_ns, c.end_ns, c.close_ns, c.name, c.domain
FROM pushes AS c
ASOF LEFT JOIN pushes AS p
    ON p.process_id = c.process_id AND p.thread_id = c.thread_id AND p.domain_id = c.domain_id
    AND p.depth = c.depth - 1 AND p.mark < c.mark;
