/*
description = "The GPUs in scope, and how long each was busy: the sum of `gpu_busy`."
stored = true
[columns]
busy_ns = "GPU busy time within the wall time"
*/
SELECT g.gpu_id, coalesce(sum(p.duration_ns), 0)::BIGINT AS busy_ns
FROM (SELECT DISTINCT gpu_id FROM _gpu_work) AS g
LEFT JOIN (
    SELECT gpu_id, sum(duration_ns)::BIGINT AS duration_ns FROM _gpu_busy_parts GROUP BY gpu_id
) AS p USING (gpu_id)
GROUP BY g.gpu_id;
