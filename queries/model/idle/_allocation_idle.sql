/*
description = "The GPU idle time that is attributed to each allocation or free."
[columns]
process_id = "Process of the call"
thread_id = "Thread of the call"
start_ns = "When the call began"
idle_ns = "GPU idle time attributed to it"
steady_ns = "The part of it in steady steps"
*/
SELECT
    process_id, thread_id, call_start_ns AS start_ns,
    sum(c.idle_ns)::BIGINT AS idle_ns, coalesce(sum(c.idle_ns) FILTER (g.step IS NOT NULL), 0)::BIGINT AS steady_ns
FROM idle_charges AS c
LEFT JOIN (FROM step_gpus WHERE phase = 'steady') AS g ON g.step = c.step AND g.gpu_id = c.gpu_id
WHERE c.charge = 'allocation'
GROUP BY ALL;
