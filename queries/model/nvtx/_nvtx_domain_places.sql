-- Of several ranges that open at one instant, the innermost counts; of several that close, the one around the
-- outermost.
CREATE VIEW _nvtx_domain_places AS
SELECT process_id, thread_id, domain_id, start_ns, coalesce(max(opened_id), nullif(min(left_id), 0)) AS range_id
FROM (
    SELECT process_id, thread_id, domain_id, start_ns, range_id AS opened_id, NULL AS left_id
    FROM _nvtx_stacks WHERE close_ns > start_ns
    UNION ALL
    SELECT process_id, thread_id, domain_id, end_ns, NULL, coalesce(outer_id, 0)
    FROM _nvtx_stacks WHERE end_ns > start_ns
)
GROUP BY process_id, thread_id, domain_id, start_ns;

COMMENT ON VIEW _nvtx_domain_places IS
    'Which push/pop range of each NVTX domain a thread is in, from each instant at which that changes.';
COMMENT ON COLUMN _nvtx_domain_places.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _nvtx_domain_places.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN _nvtx_domain_places.domain_id IS 'Number of the domain in its process, 0 for the default domain';
COMMENT ON COLUMN _nvtx_domain_places.start_ns IS 'From when on';
COMMENT ON COLUMN _nvtx_domain_places.range_id IS
    'The innermost open range of the domain, as in `nvtx_nesting`; NULL outside all ranges';
