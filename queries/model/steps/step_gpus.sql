/*
description = "How long each GPU that the process used was busy in each step."
[columns]
step = "Number of the step; NULL for work that belongs to no step"
phase = "Phase of the step, as in `steps`"
busy_ns = "GPU busy time in the step"
idle_ns = "GPU idle time in the step's wall time"
start_ns = "When the wall time of the step begins"
end_ns = "When the wall time of the step ends"
*/
SELECT step, phase, g.key AS gpu_id, g.value AS busy_ns, duration_ns - g.value AS idle_ns, start_ns, end_ns
FROM (SELECT *, unnest(map_entries(gpus)) AS g FROM facts.steps);
