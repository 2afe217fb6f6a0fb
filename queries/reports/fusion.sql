/*
title = "Which chains of kernels to fuse, and what it would save"
topic = "kernels"
place = 2
question = "Which chains of kernels would be worth fusing, and what would that save?"
main = ["candidate", "pattern", "saved_low_ns", "saved_high_ns", "saved_pct", "per_step", "kernel_count", "verdict", "complexity", "chosen", "chain"]
description = """
Finds chains of kernels that come back in order in the typical step (the mean of up to 32 steady steps with the same sequence of
operations, from the middle), on one stream and with no wait, copy or communication in between: runs that cannot be longer
without coming less often, chains that are a known operation in pieces (queries/catalog/fusion_patterns.toml), and the edges of
matrix products. Layers are found from the repetition alone. What a chain of k kernels saves as one: k - 1 launch calls and
what the host does between them; k - 1 times the fixed cost of a kernel (the shortest ones of the trace); passes over memory;
the gaps. What that is worth is found by playing the step again with the chain fused: GPU time is worth nothing while the host
is late, host time nothing while the queue is deep. saved_low_ns counts the launch calls alone, takes the new kernel's to cost 7 more
than one of the old in a PyTorch program, as Triton's does (unless an operation of PyTorch does it all), and two of three memory passes saved at a
joint; saved_high_ns takes all between the launches to go, the launch to be as cheap as any, and the kernel to take a sixth of the
longest of the chain. Gains of candidates that share kernels do not add up: chosen ones share none. Kernels that different host threads
launch, that are in different parts of a step by NVTX (forward, backward), that have CPU work of more than 100 µs between them, or that
Inductor, cuDNN or cuBLAS made are not joined."""
reading = """
Begin with the chosen ones, from the top; see one with --explain-candidate N. launches_saved counts where the host is late
(idle: starved), kernel time where the GPU is busy: a CUDA graph saves the launches of all at once, and fusing is worth it after
that too. A saved_low_ns below 0 is what the fused kernel costs more if Python launches it and nothing else is gained: take an operation of
the library. Savings are of the profiled run: without the profiler a step that is bound by launches takes about three quarters of the
time, on some machines a third, and so do its savings. After a change, profile again."""
empty = "No chain of kernels comes back in the steps: see nsys-insight steps whether steps were found; kernels of CUDA graphs are seen with --cuda-graph-trace=node"
details = ["token_low_ns", "token_high_ns", "proximity_ratio", "recurrence_ratio", "shapes", "host_low_ns", "host_high_ns", "gap_ns", "kernel_low_ns", "kernel_high_ns", "process_id", "device_id", "stream_id", "remedy"]

[columns]
candidate = "Rank: those that can be fused first, each by what they save"
pattern = "What the chain is known as; novel where no known pattern fits"
verdict = "YES, NO or UNKNOWN: whether the kernels can be fused and it pays"
chosen = "Whether it is one of those that can be fused together"
saved_low_ns = "Wall time saved in a step, at least; below 0 where it may be lost"
saved_high_ns = "Wall time saved in a step, at most"
saved_pct = "The mean of the two as a share of the step's wall"
kernel_count = "Kernels of the chain that would be one"
per_layer = "How often it comes in a layer; NULL where no layers repeat"
per_step = "How often it comes in a step"
launches_saved = "Launch calls fewer in a step; 0 where a graph launches them"
complexity = "How hard the fused kernel is to write: easy, moderate, hard"
chain = "What its kernels compute, in order; those in brackets stay"
reason = "Why not, or why nobody knows"
remedy = "What does it today"
token_low_ns = "saved_low_ns per token"
token_high_ns = "saved_high_ns per token"
proximity_ratio = "How often its first kernel is followed by exactly this chain; 1 is always"
recurrence_ratio = "Share of the steps looked at that have it as often"
shapes = "Whether all its kernels have the same grid and block (same), each its own whenever it comes (by place), or not (differ)"
host_low_ns = "Host time saved in a step, at least"
host_high_ns = "Host time saved in a step, at most"
gap_ns = "Time between its kernels in a step"
kernel_low_ns = "GPU time saved in a step, at least"
kernel_high_ns = "GPU time saved in a step, at most"
process_id = "Operating system's process id"
device_id = "CUDA device number within the process"
stream_id = "CUDA stream, numbered by CUPTI"

[notes]
step = """
SELECT 'the typical step has ' || kernels || ' kernels in ' || round(wall_ns / 1e6, 3) || ' ms'
    || coalesce(', with ' || layers || ' layers of ' || layer_period || ' operations', ', with no layers that repeat')
    || '; ' || typical_steps || ' of the ' || sampled_steps || ' steps looked at are like it'
FROM fusion_step"""
together = """
SELECT 'the chosen ' || (SELECT count(*) FROM answer WHERE chosen) || ' together: ' || round(together_low_ns / 1e3, 1) || ' to ' || round(together_high_ns / 1e3, 1)
    || ' µs of a step (' || round(100 * together_low_ns / wall_ns) || ' to ' || round(100 * together_high_ns / wall_ns) || ' %); gains of candidates that share kernels do not add up'
FROM fusion_step WHERE EXISTS (FROM answer WHERE chosen)"""
replay = """
SELECT 'played again as it is, the step lasts ' || round(replayed_ns / 1e6, 3) || ' ms instead of ' || round(wall_ns / 1e6, 3) || ' ms: take these savings for less certain'
FROM fusion_step WHERE abs(replayed_ns / nullif(wall_ns, 0) - 1) > 0.1"""
profiler = """
SELECT 'what is saved is of the profiled run: ' || profiler_share_text()
FROM answer WHERE chosen AND host_high_ns > kernel_high_ns + gap_ns LIMIT 1"""
dear = """
SELECT 'a saving below 0: launched from Python, as by Triton, the fused kernel may cost more than it saves; a library''s operation or a CUDA graph does not'
FROM answer WHERE chosen AND saved_low_ns < 0 LIMIT 1"""
processes = """
SELECT sentence FROM _other_processes WHERE EXISTS (FROM fusion_step)"""
graphs = """
SELECT 'CUDA graphs ran as a whole: their kernels are not in this table; capture with --cuda-graph-trace=node to see them'
FROM steps WHERE phase = 'steady' AND kernels IS NULL HAVING count(*) > 0"""
[agent]
rows = 5
columns = ["candidate", "pattern", "verdict", "chosen", "saved_low_ns", "saved_high_ns", "per_step", "chain"]
*/
SELECT
    c.candidate,
    coalesce(c.pattern, 'novel') AS pattern,
    c.verdict,
    c.is_chosen AS chosen,
    c.saved_low_ns,
    c.saved_high_ns,
    50 * (c.saved_low_ns + c.saved_high_ns) / s.wall_ns AS saved_pct,
    c.kernel_count,
    c.per_layer,
    c.per_step,
    c.launches_saved,
    c.complexity,
    c.chain,
    c.reason,
    c.remedy,
    c.saved_low_ns / m.tokens_per_step AS token_low_ns,
    c.saved_high_ns / m.tokens_per_step AS token_high_ns,
    c.proximity_ratio,
    c.recurrence_ratio,
    c.shapes,
    c.host_low_ns,
    c.host_high_ns,
    c.gap_ns,
    c.kernel_low_ns,
    c.kernel_high_ns,
    c.process_id,
    c.device_id,
    c.stream_id
FROM fusion_candidates AS c, fusion_step AS s, step_method AS m
ORDER BY c.candidate
