/*
title = "CPU activity while the GPU is idle"
topic = "idle"
place = 6
question = """\
What does the CPU do outside of CUDA calls while the GPU waits for it: which functions, which operating system \
calls?"""
examples = ["", "--group-by function --steady"]
main = ["wall_pct", "time_ns", "what", "nvtx_path", "function_name", "samples"]
details = ["work_pct", "off_cpu_ns"]
description = """
Splits the CPU work of idle: time in which a GPU was idle and the thread that launched the next operation was
outside of CUDA calls. For each place (the NVTX ranges around it, with numbers as #), the thread was in an operating
system call (-t osrt), had no CPU (--cpuctxsw), or computed. What it computed is known from its CPU samples in that
time (--sample): the time is divided in proportion to their number. By activity, a sample counts toward what a
function of its call chain is known for, such as formatting, else toward the module that it is in; where nsys took
call chains with only some of the samples, only those count. The rows of a place add up to its time, except with
--group-by inclusive. A place with fewer than 10 samples is not split, and places with so few samples that have less
than 5% of the time are combined. Times are per token in the steady steps (see steps), or in total for the whole
scope where no steps were found."""
reading = """
The first rows are what to do less of, later, or on another thread. Formatting, parsing, reading and writing files:
do it in blocks, in a binary format, on another thread, or less often. OS calls such as pthread_mutex_lock or futex:
another thread holds what this one needs. nanosleep: the program sleeps on purpose. off the CPU: more threads than
cores, or a wait that nsys does not trace. --group-by function names the functions; --group-by inclusive counts a
function with everything that it calls."""
empty = "No CPU activity is recorded while the GPU waits for the next operation, or it never waits"
advice = "to record it: nsys profile -t cuda,nvtx,osrt --sample=process-tree --cpuctxsw=process-tree"

[params.group_by]
default = "activity"
choices = ["activity", "function", "inclusive", "stack"]
help = """\
What samples are counted by: the activity, the function, every function of the call chain, or the whole chain, its \
frames from the outermost separated by ; as flame graph tools read it"""

[shares]
work_pct = "CPU work"

[columns]
nvtx_path = "The NVTX ranges around it; NULL outside all ranges"
what = """\
What the thread did: an activity or a function on the CPU, OS call: and its name, off the CPU, or why that is \
unknown"""
time_ns = "Time in which the GPU waited for it, per token"
wall_pct = "Share of the wall time"
work_pct = "Share of the CPU work that the GPU waited for; adds up to 100 except with --group-by inclusive"
samples = "Samples it is based on; NULL where no sample is needed"
function_name = "The function in most of the samples: the innermost one that is known for the activity, or has a name"
off_cpu_ns = "The part of time_ns in which the thread had no CPU; NULL where that was not recorded"

[notes]
samples.text = "a sample stands for {period_ns} of CPU time; functions are based on {samples:sample}"
samples.query = """
SELECT any_value(p.period_ns) AS period_ns, sum(w.samples) AS samples
FROM _cpu_work AS w CROSS JOIN _sample_period AS p
WHERE w.counted_by = $group_by AND w.counted_by <> 'inclusive' AND w.is_known AND w.samples > 0 HAVING count(*) > 0"""

kernel.text = """
no sample of this trace is in the OS kernel, so time that is not sampled may be spent there: page faults, or operating
system calls that nsys does not trace"""
kernel.query = """
FROM answer
WHERE what = 'not sampled' AND work_pct >= 5 AND EXISTS (FROM _cpu_modules)
    AND NOT EXISTS (FROM _cpu_modules WHERE module LIKE '[kernel%' OR module LIKE 'vmlinux%')
LIMIT 1"""

unsampled.text = "which functions ran was not recorded: capture with --sample=process-tree --cpuctxsw=process-tree"
unsampled.query = "FROM answer WHERE what = 'outside of OS calls' LIMIT 1"

unscheduled.text = """
context switches were not recorded: time that samples do not account for may be waiting; capture with
--cpuctxsw=process-tree"""
unscheduled.query = "FROM answer WHERE samples > 0 AND NOT EXISTS (FROM _scheduling) LIMIT 1"

start.text = "before the first operation on the GPU, which this table leaves out: of {samples:CPU sample}, {functions}"
start.query = "SELECT samples, functions FROM _edge_functions WHERE edge = 'start' AND samples >= 10"
start.items.functions = [["{samples_pct} in {function_name} (called by {callers})", "{samples_pct} in {function_name}"]]

end.text = "after the last operation on the GPU, which this table leaves out: of {samples:CPU sample}, {functions}"
end.query = "SELECT samples, functions FROM _edge_functions WHERE edge = 'end' AND samples >= 10"
end.items.functions = [["{samples_pct} in {function_name} (called by {callers})", "{samples_pct} in {function_name}"]]
*/
SELECT nvtx_path, what, time_ns, wall_pct, work_pct, samples, function_name, off_cpu_ns
FROM _cpu_work
WHERE counted_by = $group_by
ORDER BY time_ns DESC, nvtx_path, what
