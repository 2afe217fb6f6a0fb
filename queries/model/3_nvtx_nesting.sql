-- Each range opens and closes; sorted by time, the number of open ranges is the depth, and the parent is the last range
-- that opened one level up. At one instant a range that ends there closes before its neighbour opens, an outer range
-- opens before an inner one, and a range of no length closes last.
CREATE VIEW nvtx_nesting AS
WITH RECURSIVE ranges AS (
    SELECT
        row_number() OVER (ORDER BY process_id, thread_id, start_ns, end_ns DESC NULLS FIRST, name) AS range_id,
        process_id, thread_id, start_ns, end_ns, name, domain,
        greatest(start_ns, coalesce(end_ns, 9223372036854775807)) AS close_ns
    FROM nvtx_ranges
    WHERE style = 'push/pop'
),
marks AS (
    SELECT *, start_ns AS at_ns, 1 AS step, 1 AS turn, -close_ns AS order_ns, range_id AS order_id FROM ranges
    UNION ALL
    SELECT *, close_ns, -1, CASE WHEN close_ns > start_ns THEN 0 ELSE 2 END, -start_ns, -range_id FROM ranges
),
opened AS (
    SELECT *, row_number() OVER along AS mark, sum(step) OVER along AS depth
    FROM marks
    WINDOW along AS (PARTITION BY process_id, thread_id ORDER BY at_ns, turn, order_ns, order_id ROWS UNBOUNDED PRECEDING)
    QUALIFY step = 1
),
parented AS (
    SELECT c.range_id, p.range_id AS parent_id, c.process_id, c.thread_id, c.start_ns, c.end_ns, c.name, c.domain, c.depth
    FROM opened AS c
    ASOF LEFT JOIN opened AS p
        ON p.process_id = c.process_id AND p.thread_id = c.thread_id AND p.depth = c.depth - 1 AND p.mark < c.mark
),
paths AS (
    SELECT range_id, name AS path FROM parented WHERE parent_id IS NULL
    UNION ALL
    SELECT c.range_id, p.path || '/' || c.name FROM parented AS c JOIN paths AS p ON p.range_id = c.parent_id
)
SELECT
    range_id, parent_id, depth::BIGINT AS depth, path, name, domain, process_id, thread_id, start_ns, end_ns,
    duration(start_ns, end_ns) AS duration_ns
FROM parented JOIN paths USING (range_id);

COMMENT ON VIEW nvtx_nesting IS 'Push/pop ranges with their place in the nesting of their thread.';
COMMENT ON COLUMN nvtx_nesting.range_id IS 'Number of the range within this trace and scope';
COMMENT ON COLUMN nvtx_nesting.parent_id IS 'The range around it; NULL at the top';
COMMENT ON COLUMN nvtx_nesting.depth IS '1 at the top';
COMMENT ON COLUMN nvtx_nesting.path IS 'Names from the top down, joined by /';
COMMENT ON COLUMN nvtx_nesting.name IS 'Its text';
COMMENT ON COLUMN nvtx_nesting.domain IS 'Its NVTX domain; empty for the default domain';
COMMENT ON COLUMN nvtx_nesting.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN nvtx_nesting.thread_id IS 'Thread that opened it';
COMMENT ON COLUMN nvtx_nesting.start_ns IS 'When it was opened';
COMMENT ON COLUMN nvtx_nesting.end_ns IS 'When it was closed; NULL when the capture ended first';
COMMENT ON COLUMN nvtx_nesting.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
