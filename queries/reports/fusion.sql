/*
title = "Which chains of kernels to fuse, and what it would save per step"
topic = "kernels"
place = 2
in_help = true
question = "Which chains of kernels are worth fusing, and what would that save?"
examples = ["", "--steady --limit 5"]
main = [
    "candidate", "chosen", "saved_low_ns", "saved_high_ns", "per_step", "pattern", "chain", "kernel_count", "verdict",
    "complexity", "saved_pct",
]
description = """
Finds chains of kernels that repeat in order in the typical step (the mean of up to 32 steady steps with the same
sequence of operations, from the middle), on one stream and with no wait, copy or communication in between: runs that
cannot be longer without occurring less often, chains that are a known operation in pieces
(queries/catalog/fusion_patterns.toml), and the kernels next to matrix products. Layers are found from the repetition
alone. Fusing a chain of k kernels saves k - 1 launch calls and what the host does between them; k - 1 times the fixed
cost of a kernel (that of the shortest ones in the trace); passes over memory; and the gaps. What that is worth is
found by replaying the step with the chain fused: GPU time saves nothing while the host is late, host time nothing
while the queue is deep. saved_low_ns counts the launch calls alone, assumes that in a PyTorch program launching the
new kernel takes as long as 8 usual launch calls, as Triton's does from Python (unless one PyTorch operation does it
all), and that two of three memory passes are saved at a joint; saved_high_ns assumes that everything between the
launches goes away, that the launch is as cheap as any, and that the kernel takes a sixth of the longest one of the
chain. Savings of candidates that share kernels do not add up; recommended ones (chosen) share none. Kernels are not
joined if different host threads launch them, if they are in different parts of a step by NVTX (forward, backward), if
there is CPU work of more than 100 µs between them, or if Inductor, cuDNN or cuBLAS made them."""
reading = """
Start with the recommended ones (chosen), from the top; see the kernels of one with fusion-candidate --candidate N.
launches_saved matters where the host is late (launch in idle), kernel time where the GPU is busy: a CUDA graph saves
the launches of all kernels at once, and fusing still pays after that. A saved_low_ns below 0 is the extra cost of the
fused kernel if Python launches it and nothing else is saved: use an operation of the library instead. Savings are of
the run under nsys, which makes launches slower; a note says what is left of them without it, if that is known. Profile
again after a change."""
empty = """\
No chain of kernels repeats in the steps: nsys-insight steps shows whether steps were found; to record the kernels \
of CUDA graphs, capture with --cuda-graph-trace=node"""
details = [
    "token_low_ns", "token_high_ns", "proximity_ratio", "recurrence_ratio", "shapes", "host_low_ns", "host_high_ns",
    "gap_ns", "kernel_low_ns", "kernel_high_ns", "process_id", "device_id", "stream_id", "remedy",
]

[shares]
saved_pct = "the step, the mean of low and high"

[columns]
candidate = "Number of the candidate: those that can be fused come first, in order of what they save"
pattern = "The known pattern of the chain; unrecognized where none fits"
verdict = "YES, NO or UNKNOWN: whether the kernels can be fused, and that saves time in the middle of both bounds"
chosen = "Whether the candidate is recommended: its verdict is YES, and it shares no kernel with one chosen above"
saved_low_ns = "Wall time saved per step, at least; below 0 where the step may become slower"
saved_high_ns = "Wall time saved per step, at most"
saved_pct = "The mean of saved_low_ns and saved_high_ns as a share of the step time"
kernel_count = "Kernels of the chain that would become one"
per_layer = "Occurrences of the chain per layer; NULL where no layers repeat"
per_step = "Occurrences of the chain per step"
launches_saved = "Launch calls saved per step; 0 where a graph launches them"
complexity = "How hard the fused kernel is to write: easy, moderate, hard"
chain = "What its kernels compute, in order; kernels in brackets stay"
reason = "Why the verdict is NO or UNKNOWN"
remedy = "An existing implementation of the fused operation"
token_low_ns = "saved_low_ns per token"
token_high_ns = "saved_high_ns per token"
proximity_ratio = "Share of the occurrences of its first kernel that are followed by exactly this chain; 1 means always"
recurrence_ratio = "Share of the examined steps in which it occurs as often"
shapes = """\
same: all its kernels have the same grid and block; by place: each kernel has its own, the same in every occurrence; \
differ: neither"""
host_low_ns = "Host time saved per step, at least"
host_high_ns = "Host time saved per step, at most"
gap_ns = "Time between its kernels, per step"
kernel_low_ns = "GPU time saved per step, at least"
kernel_high_ns = "GPU time saved per step, at most"
process_id = "Operating system's process id"
device_id = "CUDA device number within the process"
stream_id = "CUDA stream, numbered by CUPTI"

[notes]
none.text = """
no chain is worth fusing: {reasons}<, {more} for other reasons>; a row is the chain of each reason that would save the
most"""
none.items.reasons = "{chains} because {reason}"
none.query = """
SELECT
    nullif(sum(chains) FILTER (turn > 3), 0) AS more,
    list({'chains': chains, 'reason': reason} ORDER BY turn) FILTER (turn <= 3) AS reasons
FROM (
    SELECT reason, count(*) AS chains, row_number() OVER (ORDER BY chains DESC, reason) AS turn
    FROM fusion_candidates GROUP BY reason
)
WHERE NOT EXISTS (FROM fusion_candidates WHERE verdict <> 'NO')
HAVING count(*) > 0"""

step.text = """
the typical step has {kernels:kernel} in {wall_ns}<, with {layers:layer} of {layer_period:operation}>: means of
<{?is_typical}all {sampled_steps}><{typical_steps} of {sampled_steps}> sampled steps"""
step.query = """
SELECT
    kernels, wall_ns, layers, layer_period, nullif(typical_steps, sampled_steps) AS typical_steps, sampled_steps,
    typical_steps = sampled_steps AS is_typical
FROM fusion_step"""

together.text = """
recommended set of {chosen}: saves {together_low_ns} to {together_high_ns} per step ({low_count} to {high_count}%);
savings of candidates that share kernels do not add up, so at most one of those is chosen"""
together.query = """
SELECT
    (SELECT count(*) FROM answer WHERE chosen) AS chosen, together_low_ns, together_high_ns,
    round(100 * together_low_ns / wall_ns) AS low_count, round(100 * together_high_ns / wall_ns) AS high_count
FROM fusion_step WHERE EXISTS (FROM answer WHERE chosen)"""

replay.text = "replayed unchanged, the step takes {replayed_ns} instead of {wall_ns}: these savings are less certain"
replay.query = "SELECT replayed_ns, wall_ns FROM fusion_step WHERE abs(replayed_ns - wall_ns) > 0.1 * wall_ns"

profiler.use = "unprofiled"
profiler.text = [[
    "{misfit}",
    """savings are of the run under nsys, and smaller without it: {unknown}; give the time of a step without nsys:
    --step-time""",
    """without nsys, the recommended set saves {least_ns} to {most_ns} per step: {step_ns} per {unit} (median) under
    nsys; {without}""",
    """without nsys, the recommended set saves up to {most_ns} per step: {step_ns} per {unit} (median) under nsys;
    {without}""",
]]
profiler.query = """
SELECT s.*, CASE WHEN low_ns >= 0.5 THEN low_ns END AS least_ns, most_ns
FROM _unprofiled_source AS s
CROSS JOIN (
    SELECT
        _without_nsys(
            f.together_low_ns, f.together_high_ns, u.late_ns * m.tokens_per_step, u.late_low_ns * m.tokens_per_step
        ) AS low_ns,
        _without_nsys(
            f.together_high_ns, f.together_high_ns, u.late_ns * m.tokens_per_step, u.late_high_ns * m.tokens_per_step
        ) AS most_ns
    FROM fusion_step AS f CROSS JOIN unprofiled_step AS u CROSS JOIN step_method AS m
)
WHERE EXISTS (FROM answer WHERE chosen AND host_high_ns > kernel_high_ns + gap_ns)"""

dear.text = """
a saving below 0: if launched from Python, as Triton does, the fused kernel may cost more than it saves; a library
operation or a CUDA graph does not have that cost"""
dear.query = "FROM answer WHERE chosen AND saved_low_ns < 0 LIMIT 1"

processes.use = "processes"
processes.query = "FROM _other_processes WHERE EXISTS (FROM fusion_step)"

graphs.use = "steady_graphs"
*/
SELECT
    c.candidate,
    coalesce(c.pattern, 'unrecognized') AS pattern,
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
FROM fusion_candidates AS c
CROSS JOIN fusion_step AS s
CROSS JOIN step_method AS m
-- Where no chain is worth fusing, the reasons are the answer.
WHERE (SELECT bool_or(verdict <> 'NO') FROM fusion_candidates)
    OR c.candidate IN (SELECT min(candidate) FROM fusion_candidates GROUP BY reason)
ORDER BY c.candidate
