/*
description = """One row per step of a phase that an NVTX range names (prefill, decode, or both in one step; forward,
    backward, optimizer), of the busiest process, with what it holds, as in `steps`. A range around it that is named
    step is the step. Steps in a range named warm-up are left out."""
columns_of = "steps"
[columns]
phase_step = "Number of the step among these, from 0"
phase = "prefill, decode, mixed (a step that does both), forward, backward or optimizer, as the NVTX range is named"
batch_size = "Sequences that it decodes, or prompts of a prefill, as the name of the range says; NULL where it does not"
prompt_tokens = "Tokens of the prompts, as the name says"
graph = "Which CUDA graphs it launches, by the number of their instantiation; NULL for none"
thread_id = "Thread whose range it is"
host_start_ns = "When the range of the step was opened"
host_end_ns = "When the range of the step was closed"
start_ns = "When the wall time begins: with the range, or, where the host is ahead, at its first operation on the GPU"
end_ns = "When the wall time ends: with its range, or at the next operation that is not part of the step"
done_ns = "When the range of the step was closed and everything launched in it was done"
*/
-- A query that needs the table fills it: see nsys_insight/facts/phases.py.
SELECT * EXCLUDE (gpus)
FROM facts.phase_steps;
