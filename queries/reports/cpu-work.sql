/*
title = "What the CPU does while the GPU waits for it"
topic = "idle"
place = 6
question = "What does the CPU do outside of CUDA calls while the GPU waits for it: which functions, which calls of the operating system?"
main = ["nvtx_path", "what", "time_ns", "wall_pct", "samples", "function_name"]
details = ["work_pct", "off_cpu_ns"]
description = """
Splits the CPU work of idle: time in which a GPU was idle and the thread that launched the next operation was outside of CUDA
calls. By place, the NVTX ranges around it (numbers as #), the thread was in a call of the operating system (-t osrt), had no CPU
(--cpuctxsw), or computed. What it computed is known from the samples of its CPU in that time (--sample): the time is
shared out by their number. By activity, a sample counts for what a function of its call chain is known for, such as formatting,
else for the module that it is in; where nsys took call chains with some samples only, those count. All rows of a place add
up to its time, but for --group-by inclusive. A place with less than 10 samples is not split, and places below 5 % of the time with
so few are one. Times are of the steady steps (see steps), per token; of the whole scope where none are found."""
reading = """
The first rows are what to do less of, later, or on another thread. Formatting, parsing, reading and writing files: do it in
blocks, in a binary format, on another thread, or less often. OS calls such as pthread_mutex_lock, futex: another thread holds what
this one needs. nanosleep: somebody asked to sleep. off the CPU: more threads than cores, or a wait that nsys does not trace.
--group-by function names the functions, --group-by inclusive counts a function with all that it calls."""
empty = "Nothing was recorded of what the CPU did while the GPU waited, or it never did; capture with: nsys profile -t cuda,nvtx,osrt --sample=process-tree --cpuctxsw=process-tree"

[params.group_by]
default = "activity"
choices = ["activity", "function", "inclusive", "stack"]
help = "What samples are counted by: what they are at, the function that they are in, every function of their call chains, or the whole chain, its frames from the outermost with ; between them, as programs for flame graphs take it"

[columns]
nvtx_path = "The NVTX ranges around it; NULL outside all"
what = "What the thread was at: an activity or a function on the CPU, OS call: and its name, off the CPU, or why that is not known"
time_ns = "Time of it in which the GPU waited, per token"
wall_pct = "Share of the wall"
work_pct = "Share of all rows but those of --group-by inclusive: of the CPU work that the GPU waited for"
samples = "Samples that tell it; NULL where no sample is needed"
function_name = "The function that most of them point to: the innermost one that is known for the activity, or has a name"
off_cpu_ns = "Of time_ns, that in which the thread had no CPU; NULL where that was not recorded"

[notes]
samples = """
SELECT 'a sample stands for ' || time_text(any_value(p.period_ns)) || ' of CPU time; what is said of functions rests on ' || sum(w.samples) || ' samples'
FROM _cpu_work AS w CROSS JOIN _sample_period AS p
WHERE w.counted_by = $group_by AND w.counted_by <> 'inclusive' AND w.is_told AND w.samples > 0 HAVING count(*) > 0"""
kernel = """
SELECT 'no sample of this trace is in the kernel, so what is not sampled may be its time: page faults, or calls of the operating system that nsys does not trace'
FROM answer
WHERE what = 'not sampled' AND work_pct >= 5 AND NOT EXISTS (FROM call_frames WHERE of = 'sample' AND (module LIKE '[kernel%' OR module LIKE 'vmlinux%'))
    AND EXISTS (FROM call_frames WHERE of = 'sample') LIMIT 1"""
unsampled = """
SELECT 'which functions that is was not recorded: capture with --sample=process-tree --cpuctxsw=process-tree' FROM answer
WHERE what = 'outside of OS calls' LIMIT 1"""
unscheduled = """
SELECT 'when threads had no CPU was not recorded: what samples do not account for may be waiting; capture with --cpuctxsw=process-tree'
FROM answer WHERE samples > 0 AND NOT EXISTS (FROM _scheduling) LIMIT 1"""
[agent]
rows = 6
columns = ["nvtx_path", "what", "time_ns", "wall_pct", "samples", "function_name"]
*/
SELECT nvtx_path, what, time_ns, wall_pct, work_pct, samples, function_name, off_cpu_ns
FROM _cpu_work
WHERE counted_by = $group_by
ORDER BY time_ns DESC, nvtx_path, what
