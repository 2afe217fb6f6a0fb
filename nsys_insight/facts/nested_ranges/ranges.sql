-- NVTX ranges with numbers: by thread and time, outer ones first, start/end ranges last. Names are numbered in their
-- order: sorting numbers takes half the memory that sorting texts takes.
CREATE OR REPLACE TABLE internal.range_texts AS
SELECT name, domain, row_number() OVER (ORDER BY name, domain) - 1 AS text_id
FROM (SELECT DISTINCT name, domain FROM nvtx_ranges);

CREATE OR REPLACE TABLE internal.ranges_by_start AS
SELECT
    row_number() OVER (
        ORDER BY is_free, process_id, thread_id, start_ns, close_ns DESC, text_id, domain_id, end_ns
    ) AS range_id,
    *
FROM (
    SELECT
        r.process_id, r.thread_id, coalesce(r.domain_id, 0) AS domain_id, r.start_ns, r.end_ns,
        greatest(r.start_ns, coalesce(r.end_ns, 9223372036854775807)) AS close_ns, t.text_id,
        r.style = 'start/end' AS is_free
    FROM nvtx_ranges AS r JOIN internal.range_texts AS t USING (name, domain)
);
