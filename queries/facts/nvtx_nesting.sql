/* topic = "nvtx" */
-- The parent is the innermost range, of any domain, that is open from start to end: a path names only what surrounds an
-- entire range. In each other domain of the thread, the search begins at the range that is open at the start, and goes
-- outwards as long as that range ends too early. Of ranges with equal times, the lower number is the outer range.
CREATE TABLE IF NOT EXISTS facts.nvtx_nesting (
    range_id BIGINT, parent_id BIGINT, depth BIGINT, path VARCHAR, name VARCHAR, domain VARCHAR, process_id BIGINT,
    thread_id BIGINT, start_ns BIGINT, end_ns BIGINT, duration_ns BIGINT, style VARCHAR
);

INSERT INTO facts.nvtx_nesting BY NAME
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

COMMENT ON VIEW nvtx_nesting IS
    'Ranges with their place in the nesting of their thread, across NVTX domains. Start/end ranges do not nest.';
COMMENT ON COLUMN nvtx_nesting.range_id IS 'Number of the range within this trace and scope';
COMMENT ON COLUMN nvtx_nesting.parent_id IS
    'The innermost range, of any domain, that is open from its start to its end; NULL at the top';
COMMENT ON COLUMN nvtx_nesting.depth IS '1 at the top';
COMMENT ON COLUMN nvtx_nesting.path IS 'Names from the top down, joined by /';
COMMENT ON COLUMN nvtx_nesting.name IS 'Its text';
COMMENT ON COLUMN nvtx_nesting.domain IS 'Its NVTX domain; empty for the default domain';
COMMENT ON COLUMN nvtx_nesting.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN nvtx_nesting.thread_id IS 'Thread that opened it';
COMMENT ON COLUMN nvtx_nesting.start_ns IS 'When it was opened';
COMMENT ON COLUMN nvtx_nesting.end_ns IS 'When it was closed; NULL when the capture ended first';
COMMENT ON COLUMN nvtx_nesting.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN nvtx_nesting.style IS 'push/pop (nested, one thread) or start/end (free)';
