/* topic = "nvtx" */
-- NVTX has one stack per thread and domain: the last pushed range is popped first. Sorted by time, the number of open
-- ranges is the depth, and the parent of a range is the last range that was pushed one level up. At the same instant,
-- ranges that end close before others open, and outer ranges open before inner ones. A range of length 0 opens last and
-- closes at once, so that nothing is inside it.
CREATE TABLE IF NOT EXISTS facts.nvtx_stacks (
    range_id BIGINT, outer_id BIGINT, process_id BIGINT, thread_id BIGINT, domain_id BIGINT, start_ns BIGINT,
    end_ns BIGINT,
    close_ns BIGINT, name VARCHAR, domain VARCHAR
);

INSERT INTO facts.nvtx_stacks BY NAME
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

COMMENT ON VIEW _nvtx_stacks IS
    'Push/pop ranges as they are nested within their thread and domain: what `nvtx_nesting` is made of.';
COMMENT ON COLUMN _nvtx_stacks.range_id IS 'Numbers the ranges, by thread and time, outer ones first';
COMMENT ON COLUMN _nvtx_stacks.outer_id IS 'The innermost range of the same domain around it; NULL for none';
COMMENT ON COLUMN _nvtx_stacks.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _nvtx_stacks.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN _nvtx_stacks.domain_id IS 'Number of the domain in its process, 0 for the default domain';
COMMENT ON COLUMN _nvtx_stacks.start_ns IS 'When the range was opened';
COMMENT ON COLUMN _nvtx_stacks.end_ns IS 'When it was closed; NULL if it was open at the end of the capture';
COMMENT ON COLUMN _nvtx_stacks.close_ns IS
    'The same for sorting: later than all for an open range, never before start_ns';
COMMENT ON COLUMN _nvtx_stacks.name IS 'The range''s text';
COMMENT ON COLUMN _nvtx_stacks.domain IS 'Name of its domain; empty for the default domain';
