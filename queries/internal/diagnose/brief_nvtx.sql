-- The NVTX ranges of the scope by level and name, with # for numbers where names differ only in these. NCCL's own
-- ranges are collectives.
WITH names AS (
    SELECT depth, name, fold(name) AS folded_name, calls, host_ns
    FROM (
        SELECT depth, name, count(*) AS calls, sum(duration_ns)::BIGINT AS host_ns
        FROM nvtx_nesting WHERE domain <> 'NCCL' GROUP BY ALL
    )
)
SELECT depth, folded_name AS name, sum(calls)::BIGINT AS calls, sum(host_ns)::BIGINT / sum(calls) AS avg_ns
FROM names
GROUP BY ALL
ORDER BY depth, sum(host_ns) DESC NULLS LAST, name
