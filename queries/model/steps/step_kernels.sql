/*
description = "Which kernels each steady step launched, and their time: one row per step and kernel name."
[columns]
step = "Number of the step"
name_id = "The kernel's name, in `strings` and `kernel_names`"
calls = "How many of them the step launched"
kernel_ns = "Sum of their durations"
*/
SELECT step, name_id, sum(calls)::BIGINT AS calls, sum(kernel_ns)::BIGINT AS kernel_ns
FROM facts.step_kernels
WHERE step IS NOT NULL
GROUP BY step, name_id;
