/*
description = "One row per NCCL kernel in a steady step: how long nothing else runs on its GPU meanwhile."
[columns]
step = "Number of the step"
operation = "AllReduce, AllGather …, as in `nccl_kernels`"
name = "The kernel"
bytes = "Size of the message; NULL where unknown"
start_ns = "When the NCCL kernel started"
end_ns = "When the NCCL kernel ended"
exposed_ns = "Part of this time in which its GPU runs no other work"
*/
-- What lies before a time of the other work of a GPU: what each interval adds to the union of those before it, without
-- what the latest of them takes after that time.
WITH work_intervals AS (
    SELECT
        process_id, gpu_id, start_ns, end_ns,
        max(end_ns) OVER (
            PARTITION BY process_id, gpu_id ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_ns
    FROM _rank_work
),
covered_times AS (
    SELECT process_id, gpu_id, start_ns, max(covered_ns) AS covered_ns, max(last_ns) AS last_ns
    FROM (
        SELECT
            process_id, gpu_id, start_ns,
            sum(greatest(end_ns - greatest(start_ns, coalesce(before_ns, start_ns)), 0)) OVER (
                PARTITION BY process_id, gpu_id ORDER BY start_ns, end_ns
            )::BIGINT AS covered_ns,
            max(end_ns) OVER (PARTITION BY process_id, gpu_id ORDER BY start_ns, end_ns) AS last_ns
        FROM work_intervals
    )
    GROUP BY ALL
),
collectives AS (
    SELECT k.*, s.step
    FROM nccl_kernels AS k
    ASOF JOIN _steady_windows AS s ON s.process_id = k.process_id AND s.start_ns <= k.start_ns
    WHERE k.start_ns < s.end_ns
)
SELECT
    c.step, c.operation, n.name, c.bytes, c.start_ns, c.end_ns,
    c.end_ns - c.start_ns - (
        coalesce(b.covered_ns - greatest(b.last_ns - c.end_ns, 0), 0)
        - coalesce(a.covered_ns - greatest(a.last_ns - c.start_ns, 0), 0)
    ) AS exposed_ns
FROM collectives AS c
LEFT JOIN kernel_names AS n USING (name_id)
ASOF LEFT JOIN covered_times AS a
    ON a.process_id = c.process_id AND a.gpu_id = c.gpu_id AND a.start_ns < c.start_ns
ASOF LEFT JOIN covered_times AS b ON b.process_id = c.process_id AND b.gpu_id = c.gpu_id AND b.start_ns < c.end_ns;
