/* parameters = ["ranges"] */
-- The host time of each group of `ranges` (group_id, range_id, end_ns) outside their nested ranges, and the time of the
-- GPU work launched there.
WITH range_changes AS MATERIALIZED (
    SELECT
        thread_of(thread_id, process_id) AS thread, start_ns, range_id,
        lead(start_ns) OVER (PARTITION BY process_id, thread_id ORDER BY start_ns) - start_ns AS host_ns
    FROM nvtx_places
)
SELECT
    r.group_id,
    sum(p.host_ns) FILTER (WHERE r.end_ns IS NOT NULL)::BIGINT AS host_ns,
    sum(p.gpu_ns)::BIGINT AS gpu_ns
FROM (
    SELECT range_id, host_ns, NULL AS gpu_ns FROM range_changes
    UNION ALL
    SELECT p.range_id, NULL, w.gpu_ns
    FROM _nvtx_work AS w ASOF JOIN range_changes AS p ON p.thread = w.thread AND p.start_ns <= w.start_ns
) AS p
JOIN query_table(ranges) AS r ON r.range_id = p.range_id
GROUP BY r.group_id;
