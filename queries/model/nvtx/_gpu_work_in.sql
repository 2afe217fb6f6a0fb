/* parameters = ["ranges", "work"] */
-- The GPU time and the kernels that each group of `ranges` (group_id, thread, start_ns, close_ns) launched, by the
-- `work` (thread, start_ns, gpu_ns, kernels). The work of each thread is summed in pieces, each entirely inside or
-- outside of every range. So the work in a range is the difference of two running sums, for any number of overlapping
-- ranges.
WITH running_sums AS (
    SELECT thread, start_ns, sum(gpu_ns) OVER by_start AS gpu_ns, sum(kernels) OVER by_start AS kernels
    FROM query_table(work)
    WINDOW by_start AS (PARTITION BY thread ORDER BY start_ns ROWS UNBOUNDED PRECEDING)
)
SELECT i.group_id, sum(i.sign * r.gpu_ns)::BIGINT AS gpu_ns, sum(i.sign * r.kernels)::BIGINT AS kernels
FROM (
    SELECT group_id, thread, unnest([start_ns, close_ns]) AS at_ns, unnest([-1, 1]) AS sign
    FROM _stretches_of(ranges)
) AS i
ASOF JOIN running_sums AS r ON r.thread = i.thread AND r.start_ns < i.at_ns
GROUP BY i.group_id;
