/*
description = "Which push/pop range of each NVTX domain a thread is in, from each instant at which that changes."
[columns]
domain_id = "Number of the domain in its process, 0 for the default domain"
start_ns = "From when on"
range_id = "The innermost open range of the domain, as in `nvtx_nesting`; NULL outside all ranges"
*/
-- Of several ranges that open at one instant, the innermost counts; of several that close, the one around the
-- outermost.
SELECT process_id, thread_id, domain_id, start_ns, coalesce(max(opened_id), nullif(min(left_id), 0)) AS range_id
FROM (
    SELECT process_id, thread_id, domain_id, start_ns, range_id AS opened_id, NULL AS left_id
    FROM _nvtx_stacks WHERE close_ns > start_ns
    UNION ALL
    SELECT process_id, thread_id, domain_id, end_ns, NULL, coalesce(outer_id, 0)
    FROM _nvtx_stacks WHERE end_ns > start_ns
)
GROUP BY process_id, thread_id, domain_id, start_ns;
