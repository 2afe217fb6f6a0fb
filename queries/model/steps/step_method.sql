/*
description = "One row: how the rows of `steps` were found. No row when nothing ran on a GPU."
[columns]
method = "nvtx, graph, sequence, or count; NULL when no steps were found"
pattern = "The NVTX ranges' name, with # for numbers; or which operation begins or ends a step"
confidence = "high, medium or low"
reason = "Why"
process_id = "The process whose steps they are: the one whose stream is busy for longest"
step_count = "Steps found"
steady_count = "Steps of the steady state"
outlier_count = "Steady steps that are outliers"
warm_up_count = "Steps left out at the start"
tail_count = "Steps left out at the end"
prefill_count = "Prefills: work like a step, but with different operations and longer"
tokens_per_step = "Tokens that a step makes"
loop = "The loop of `loops` whose iterations the steps are; NULL where they are NVTX ranges or a count"
unit = "What a step is called: step; or iteration, layer, call of attention where it is probably a part of a step"
doubt = "Which other level may be the step, and why; NULL if the level is clear"
measured_ns = "Time of a step without the profiler, as --step-time gives it; NULL if it is not given"
*/
FROM facts.step_method;
