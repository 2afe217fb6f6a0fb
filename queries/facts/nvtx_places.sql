/* topic = "nvtx" */
-- Ranges of two domains may overlap without nesting. Then the range that opened last is the innermost. Range numbers
-- increase with the start, and at the same instant from outer to inner, so the innermost range has the highest number.
CREATE TABLE IF NOT EXISTS facts.nvtx_places (
    process_id BIGINT, thread_id BIGINT, start_ns BIGINT, range_id BIGINT
);

INSERT INTO facts.nvtx_places BY NAME
WITH domain_places AS MATERIALIZED (
    FROM _nvtx_domain_places
),
-- The domains of each thread, and whether it has several.
thread_domains AS (
    SELECT process_id, thread_id, unnest(domains) AS domain_id, len(domains) > 1 AS has_several
    FROM (SELECT process_id, thread_id, list(DISTINCT domain_id) AS domains FROM domain_places GROUP BY ALL)
),
instants AS (
    SELECT i.*, t.domain_id
    FROM (SELECT DISTINCT process_id, thread_id, start_ns FROM domain_places) AS i
    JOIN thread_domains AS t ON t.process_id = i.process_id AND t.thread_id = i.thread_id AND t.has_several
)
SELECT process_id, thread_id, start_ns, range_id
FROM domain_places SEMI JOIN (FROM thread_domains WHERE NOT has_several) USING (process_id, thread_id)
UNION ALL
SELECT i.process_id, i.thread_id, i.start_ns, max(p.range_id)
FROM instants AS i
ASOF LEFT JOIN domain_places AS p
    ON p.process_id = i.process_id AND p.thread_id = i.thread_id AND p.domain_id = i.domain_id
        AND p.start_ns <= i.start_ns
GROUP BY i.process_id, i.thread_id, i.start_ns;

COMMENT ON VIEW nvtx_places IS
    'Which push/pop range a thread is in, from each instant at which that changes: ASOF JOIN it with anything on '
    'the thread.';
COMMENT ON COLUMN nvtx_places.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN nvtx_places.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN nvtx_places.start_ns IS 'From when on';
COMMENT ON COLUMN nvtx_places.range_id IS
    'The innermost open range (of any domain, the one that opened last), as in `nvtx_nesting`; NULL outside all ranges';
