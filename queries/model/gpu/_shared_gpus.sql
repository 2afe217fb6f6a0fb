/*
description = """One row per GPU that several processes or CUDA contexts shared: at the same time, so that the durations
    of kernels include the time of others; or in turn."""
stored = true
[columns]
gpu_id = "The GPU"
processes = "Processes that ran on it"
contexts = "CUDA contexts of these processes that ran on it"
overlap_pct = "Share of its busy time in which kernels of several contexts ran, 100 at most; NULL below 1"
turns = "How often a kernel of another context came next, where they take turns; NULL where they run at the same time"
*/
-- The time in which kernels of several contexts run on one GPU: the sum of the busy times of the contexts, less the
-- time in which any of them is busy. GPUs of a single context are left out first. Older exports do not say which GPU a
-- process means by its device number.
WITH shared AS MATERIALIZED (
    SELECT DISTINCT d.process_id, d.device_id, d.gpu_id
    FROM devices AS d LEFT JOIN _contexts AS c USING (process_id, device_id)
    QUALIFY count(DISTINCT struct_pack(p := process_id, c := c.context_id)) OVER (PARTITION BY d.gpu_id) > 1
),
intervals AS (
    SELECT s.gpu_id, k.process_id, struct_pack(p := k.process_id, c := k.context_id) AS context, k.start_ns, k.end_ns
    FROM kernel_events AS k JOIN shared AS s USING (process_id, device_id)
),
intervals_with_reach AS (
    SELECT
        *,
        max(end_ns) OVER (PARTITION BY gpu_id ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
            AS reach_ns,
        max(end_ns) OVER (
            PARTITION BY gpu_id, context ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS own_reach_ns,
        context <> lag(context) OVER (PARTITION BY gpu_id ORDER BY start_ns) AS is_turn
    FROM intervals
),
busy_times AS (
    SELECT
        gpu_id, count(DISTINCT process_id) AS processes, count(DISTINCT context) AS contexts,
        sum(greatest(0, end_ns - greatest(start_ns, coalesce(reach_ns, start_ns))))::DOUBLE AS busy_ns,
        sum(greatest(0, end_ns - greatest(start_ns, coalesce(own_reach_ns, start_ns))))::DOUBLE AS summed_ns,
        count(*) FILTER (is_turn) AS changes
    FROM intervals_with_reach
    GROUP BY gpu_id
)
SELECT
    gpu_id, processes, contexts,
    CASE WHEN summed_ns >= 1.01 * busy_ns THEN 100 * least((summed_ns - busy_ns) / busy_ns, 1) END AS overlap_pct,
    -- Fewer turns may be two parts of one program, one after the other.
    CASE WHEN overlap_pct IS NULL AND changes >= 10 THEN changes END AS turns
FROM busy_times
WHERE coalesce(overlap_pct, turns) IS NOT NULL
ORDER BY gpu_id;
