/* parameters = ["ranges"] */
-- The kernels and copies that each group of `ranges` (group_id, thread, start_ns, close_ns) requested: those whose API
-- call begins on the same thread while a range of the group is open. As in `_gpu_work_in`, the sums
-- in a range are differences of running sums.
WITH running_sums AS (
    SELECT
        thread_of(a.thread_id, a.process_id) AS thread, a.start_ns,
        count(CASE WHEN o.kind = 'kernel' THEN 1 END) OVER by_start AS kernels,
        sum(o.duration_ns) FILTER (o.kind = 'kernel') OVER by_start AS kernel_ns,
        count(CASE WHEN o.kind = 'copy' THEN 1 END) OVER by_start AS copies,
        sum(o.duration_ns) FILTER (o.kind = 'copy') OVER by_start AS copy_ns,
        sum(o.size_bytes) FILTER (o.kind = 'copy') OVER by_start AS copy_bytes
    FROM gpu_ops AS o JOIN api_calls AS a USING (process_id, correlation_id)
    WHERE o.kind IN ('kernel', 'copy') AND a.call_group IN ('launch', 'graph launch', 'copy')
        AND EXISTS (FROM query_table(ranges))
    WINDOW by_start AS (PARTITION BY thread_of(a.thread_id, a.process_id) ORDER BY a.start_ns)
)
SELECT
    i.group_id, sum(i.sign * r.kernels)::BIGINT AS kernels, sum(i.sign * coalesce(r.kernel_ns, 0))::BIGINT AS kernel_ns,
    sum(i.sign * r.copies)::BIGINT AS copies, sum(i.sign * coalesce(r.copy_ns, 0))::BIGINT AS copy_ns,
    sum(i.sign * coalesce(r.copy_bytes, 0))::BIGINT AS copy_bytes
FROM (
    SELECT group_id, thread, unnest([start_ns, close_ns]) AS at_ns, unnest([-1, 1]) AS sign
    FROM _stretches_of(ranges)
) AS i
ASOF JOIN running_sums AS r ON r.thread = i.thread AND r.start_ns < i.at_ns
GROUP BY i.group_id;
