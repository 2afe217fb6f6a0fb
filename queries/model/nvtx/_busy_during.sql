/* parameters = ["ranges"] */
-- How long the GPU was busy while a range of each group of `ranges` (group_id, thread, start_ns, close_ns, end_ns) was
-- open, with work that any range or thread launched. Threads of a process that are in a group at the same time count
-- once. GPUs are those that the process uses; of several, the mean counts. Time is cut into pieces at every start and
-- end of a range, so the busy time in a range is the difference of two running sums.
WITH process_ranges AS (
    SELECT
        group_id, thread >> 24 AS process_id, start_ns, close_ns,
        max(close_ns) OVER (
            PARTITION BY group_id, thread >> 24 ORDER BY start_ns, close_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS last_close_ns
    FROM query_table(ranges) WHERE end_ns IS NOT NULL
),
-- The parts of ranges that no earlier range of the group covers: disjoint, with the same union.
open_times AS MATERIALIZED (
    SELECT group_id, process_id, greatest(start_ns, coalesce(last_close_ns, start_ns)) AS start_ns, close_ns AS end_ns
    FROM process_ranges
    WHERE close_ns > coalesce(last_close_ns, start_ns)
),
pieces AS MATERIALIZED (
    SELECT at_ns AS start_ns, lead(at_ns) OVER (ORDER BY at_ns) AS end_ns
    FROM (SELECT DISTINCT unnest([start_ns, end_ns]) AS at_ns FROM open_times)
    QUALIFY end_ns IS NOT NULL
),
busy_times AS NOT MATERIALIZED (
    SELECT gpu_id, start_ns, end_ns FROM _gpu_busy_parts
),
running_sums AS (
    SELECT
        gpu_id, window_ns AS start_ns,
        sum(sum(end_ns - start_ns)) OVER (PARTITION BY gpu_id ORDER BY window_ns ROWS UNBOUNDED PRECEDING) AS busy_ns
    FROM cut_to('busy_times', 'pieces')
    GROUP BY gpu_id, window_ns
),
process_gpus AS MATERIALIZED (
    SELECT process_id, gpu_id, count(*) OVER (PARTITION BY process_id) AS gpus
    FROM (SELECT DISTINCT process_id, gpu_id FROM _gpu_work)
),
open_ends AS (
    SELECT
        t.group_id, g.gpu_id, g.gpus, t.end_ns - t.start_ns AS open_ns, unnest([t.start_ns, t.end_ns]) AS at_ns,
        unnest([-1, 1]) AS sign
    FROM open_times AS t JOIN process_gpus AS g USING (process_id)
)
SELECT
    e.group_id,
    round(sum(e.sign * coalesce(r.busy_ns, 0) / e.gpus))::BIGINT AS busy_ns,
    round(sum(e.open_ns / e.gpus) FILTER (WHERE e.sign = 1))::BIGINT AS open_ns
FROM open_ends AS e
ASOF LEFT JOIN running_sums AS r ON r.gpu_id = e.gpu_id AND r.start_ns < e.at_ns
GROUP BY e.group_id;
