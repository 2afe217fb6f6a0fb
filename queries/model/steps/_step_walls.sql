/*
description = "The wall time of the steady steps on all GPUs, one row; of the whole scope where there are none."
[columns]
all_ns = "Sum over steps and GPUs"
walls = "How many steps and GPUs it is the sum of"
tokens = "Tokens that a step makes"
steps = "Number of steps"
*/
-- The parts of a step add up to its wall time on each GPU, so their sum is the wall time of all steps and GPUs.
SELECT
    sum(time_ns)::DOUBLE AS all_ns,
    count(DISTINCT (step, gpu_id)) AS walls,
    any_value(CASE WHEN step IS NULL THEN 1 ELSE (SELECT tokens_per_step FROM step_method) END) AS tokens,
    any_value(CASE WHEN step IS NULL THEN 1 ELSE (SELECT count(*) FROM steps WHERE phase = 'steady') END) AS steps
FROM step_budget;
