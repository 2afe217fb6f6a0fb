/*
description = """Which NVTX range a thread is in, from each instant at which that changes: ASOF JOIN it with anything on
    the thread."""
stored = true
[columns]
start_ns = "From when on"
range_id = """The innermost open push/pop range (of any domain, the one that opened last), else the start/end range that
    opened last, as in `nvtx_nesting`; NULL outside all ranges"""
*/
-- Ranges of two domains may overlap without nesting. Then the range that opened last is the innermost. Range numbers
-- increase with the start, and at the same instant from outer to inner, so the innermost range has the highest number.
-- Start/end ranges may overlap, such as requests of a server. They count where no push/pop range is open, and the range
-- that opened last counts first.
WITH domain_places AS MATERIALIZED (
    FROM _nvtx_domain_places
),
-- The domains of each thread, and whether it has several.
thread_domains AS (
    SELECT process_id, thread_id, unnest(domains) AS domain_id, len(domains) > 1 AS has_several
    FROM (SELECT process_id, thread_id, list(DISTINCT domain_id) AS domains FROM domain_places GROUP BY ALL)
),
-- Joins by time sort what they join, so only the places of threads that need it go into them.
shared_places AS (
    FROM domain_places SEMI JOIN (FROM thread_domains WHERE has_several) USING (process_id, thread_id)
),
instants AS (
    SELECT i.*, t.domain_id
    FROM (SELECT DISTINCT process_id, thread_id, start_ns FROM shared_places) AS i
    JOIN thread_domains AS t ON t.process_id = i.process_id AND t.thread_id = i.thread_id
),
stack_places AS MATERIALIZED (
    SELECT process_id, thread_id, start_ns, range_id
    FROM domain_places SEMI JOIN (FROM thread_domains WHERE NOT has_several) USING (process_id, thread_id)
    UNION ALL
    SELECT i.process_id, i.thread_id, i.start_ns, max(p.range_id)
    FROM instants AS i
    ASOF LEFT JOIN shared_places AS p
        ON p.process_id = i.process_id AND p.thread_id = i.thread_id AND p.domain_id = i.domain_id
            AND p.start_ns <= i.start_ns
    GROUP BY i.process_id, i.thread_id, i.start_ns
),
free_ranges AS MATERIALIZED (
    FROM _free_ranges
),
places_with_free_ranges AS (
    FROM stack_places SEMI JOIN free_ranges USING (process_id, thread_id)
),
free_places AS MATERIALIZED (
    SELECT i.process_id, i.thread_id, i.start_ns, max(r.range_id) AS range_id
    FROM (
        SELECT process_id, thread_id, start_ns FROM free_ranges
        UNION
        SELECT process_id, thread_id, close_ns FROM free_ranges WHERE end_ns IS NOT NULL
    ) AS i
    LEFT JOIN free_ranges AS r
        ON r.process_id = i.process_id AND r.thread_id = i.thread_id
            AND r.start_ns <= i.start_ns AND r.close_ns > i.start_ns
    GROUP BY ALL
)
FROM stack_places ANTI JOIN free_ranges USING (process_id, thread_id)
UNION ALL
SELECT i.process_id, i.thread_id, i.start_ns, coalesce(s.range_id, f.range_id)
FROM (
    SELECT process_id, thread_id, start_ns FROM free_places
    UNION
    SELECT process_id, thread_id, start_ns FROM places_with_free_ranges
) AS i
ASOF LEFT JOIN places_with_free_ranges AS s
    ON s.process_id = i.process_id AND s.thread_id = i.thread_id AND s.start_ns <= i.start_ns
ASOF LEFT JOIN free_places AS f
    ON f.process_id = i.process_id AND f.thread_id = i.thread_id AND f.start_ns <= i.start_ns;
