/*
code = "NSI401"
title = "The kernels with the most GPU time"
family = "kernels"
symptom = "kernel-time"
overlaps = true
meaning = "The GPU is busy with these kernels whatever the host does; the run cannot become shorter than they are."
evidence = [
    "{kernels}",
    "{more_kernels:more kernel}",
    """{?is_spill}{first} reserves {local_bytes} of local memory per thread more than another kernel, at
    {registers:register} per thread: registers are spilled, or arrays or a stack lie in local memory""",
    """{?is_stack}{first} reserves {local_bytes} of local memory per thread more than another kernel, at
    {registers:register} per thread: arrays that are indexed at run time, or a stack, lie in local memory (a limit at
    which registers are spilled is most often a multiple of 8)""",
    "a block of {first} is {narrow_block}: neighboring threads differ in y, not in x",
    "{first} takes {times:time} as long as reading and writing 16 bytes per thread would take",
    "{?is_unmeasured}distance from the roofline not measured",
]
skip_if = "All of its work is needed, and there is no faster implementation of it."
effort = "redesign"
estimate = "With measurements of ncu, the time above that of the nearer roof; otherwise none is stated."
links = ["Nsight Compute Profiling Guide, Roofline Charts"]
example = "sample_traces/decode_graph_node.sqlite"
report = "classify-kernels"
when = """
SELECT 1 FROM classify_report WHERE part = 'wall' AND verdict = 'GPU-bound'
UNION ALL
SELECT 1 FROM _steady_shapes WHERE family IS DISTINCT FROM 'comm'
GROUP BY name HAVING 100 * sum(total_ns) / (SELECT sum(time_ns)::DOUBLE FROM step_budget) >= $min_pct"""

[items]
kernels = [
    "{name}: {kernel_wall_pct} of the wall time", "{kernel_time_pct} of kernel time",
    "{calls:call} {per} of {mean_ns} on average",
    ["{bound}-bound by {source} ({reason})", "{bound} by {source} ({reason})"],
    "{used_pct} of what {ceiling} can deliver",
]

[fix.near_peak]
any = """
{first} is near its roofline; reduce its work: lower precision, fewer bytes, fewer instructions, or fuse it with its
neighbors."""

[fix.short]
any = """
{first} is too short to fill the GPU: fuse it with its neighbors (nsys-insight fusion), or give it more work, such
as a larger batch."""

[fix.gemv]
any = """
{first} reads its whole matrix for one vector: batch vectors into one matrix product, or store the matrix in a smaller
type (half precision, 8 bits)."""

[fix.memory]
any = """
Make {first} move fewer bytes: fuse it with its neighbors (nsys-insight fusion), use a smaller type, or a layout
without transposes."""

[fix.spills]
any = """
Give a thread of {first} the registers that it needs: no cap for the compiler, and launch bounds of the threads that are
really launched; or let it hold fewer values."""
cuda = """
Give a thread of {first} the registers that it needs: __launch_bounds__ of the threads that are really launched, no
-maxrregcount; or let it hold fewer values. nvcc -Xptxas -v shows what is spilled (nsys-insight ptxas); a stack without
spills is an array that is indexed at run time: make its size a constant, and unroll the loops over it."""
python = """
Give a thread of {first} the registers that it needs: in Triton, smaller BLOCK sizes, or more warps (num_warps) for the
same block; in CUDA C++, __launch_bounds__ of the threads that are really launched, and no -maxrregcount."""
numba = """
Give a thread of {first} the registers that it needs: no max_registers in cuda.jit; or let it hold fewer values."""

[fix.narrow]
any = """
Make the blocks of {first} 32 threads wide in x, such as 32x8, if x goes along the rows of the arrays: then the threads
of a warp access neighboring elements."""

[fix.slow_threads]
any = """
If a thread of {first} has no long loop, its accesses are slow: let neighboring threads access neighboring elements, sum
within a block before an atomic operation, copy data from the host's memory (pinned, managed) to the GPU first, and
build without -G and printf. If it has one, split the loop over threads, or profile it with ncu (nsys-insight ncu
plan)."""

# An array whose index is unknown to the compiler cannot lie in registers.
[fix.stack]
any = """
Let the arrays of a thread of {first} lie in registers: make their sizes and the bounds of the loops over them known to
the compiler, and unroll these loops; or keep them in shared memory."""
cuda = """
Let the arrays of a thread of {first} lie in registers: make their sizes and the bounds of the loops over them constants
(template parameters, constexpr), and unroll these loops (#pragma unroll); or keep them in shared memory."""
python = """
Let the arrays of a thread of {first} lie in registers: make their sizes and the bounds of the loops over them constants
(template parameters or macros in CUDA C++, tl.constexpr in Triton), and unroll these loops; or keep them in shared
memory."""
numba = """
Let the arrays of a thread of {first} lie in registers: make the bounds of the loops over a cuda.local.array global
constants, so that they are unrolled; or use cuda.shared.array."""

[fix.latency]
any = "Give {first} more parallel work: more blocks, several inputs in one launch (nsys-insight occupancy)."

[fix.repeated]
any = """
If the repetitions of {first} read the same data (bins, classes, filters), do them in one pass over it; if they work on
different data, in one launch. If each needs the one before, as time steps do, profile it with ncu (nsys-insight ncu
plan): its metrics show what limits the kernel."""

[fix.other]
any = "Profile {first} with ncu (nsys-insight ncu plan writes the command): its metrics show what limits the kernel."

[params]
min_pct = [10.0, """Share of the wall time from which a kernel is named; of a GPU-bound run, the first three are named
    in any case (10: what a cause needs to bound a step)"""]
little_pct = [1.0, "Share of the wall time below which a kernel is not named (1: what runs differ by)"]
short_ns = [10000,
    "A latency-bound kernel that is shorter has too little work (twice the launch cost of classify-kernels)"]
few_registers = [64,
    "A kernel with at most this many registers per thread can have more (of 255, at half of all warps)"]
register_unit = [8, "A limit on the registers of a thread is most often a multiple of this number"]
min_local = [64.0, "Bytes of local memory per thread from which they count (64: 16 values)"]
unjudged_pct = [95.0, """Share of the wall time from which kernels are a warning, unless most of their time is known to
    be efficient (95: all but a small part of the step)"""]
efficient_pct = [80.0, "Share of the GPU time that must be known to be efficient for a healthy run"]
near_pct = [85.0, "Share of the nearer roof from which a kernel is near it"]
*/
-- The bound of a kernel and the ncu measurements belong to one launch shape: the shape in which it spends most time.
WITH shapes AS (
    SELECT
        s.*, b.bound, b.evidence, b.reason, h.ceiling, h.ceiling_used_pct AS used_pct,
        coalesce(used_pct, if(b.evidence = 'gpu_metrics', greatest(b.sm_pct, b.memory_pct), NULL)) AS near_pct,
        s.total_ns * h.recoverable_ns / h.total_ns AS recoverable_ns
    FROM _steady_shapes AS s
    LEFT JOIN (
        FROM classify_kernels_report
        QUALIFY row_number() OVER (PARTITION BY name, grid, block ORDER BY total_ns DESC, bound) = 1
    ) AS b USING (name, grid, block)
    LEFT JOIN headroom_report AS h USING (name, grid, block)
    WHERE s.family IS DISTINCT FROM 'comm'
),
kernel_totals AS (
    SELECT
        s.name, sum(s.calls) AS calls, sum(s.total_ns) AS total_ns, sum(s.recoverable_ns) AS recoverable_ns,
        -- Kernels that run at the same time have durations that add up to more than the time in which the GPU is busy.
        sum(s.kernel_time_pct) AS kernel_time_pct, max(100 * t.busy_ns / t.wall_ns) AS busy_pct,
        least(100 * sum(s.total_ns) / any_value(t.wall_ns * t.units), busy_pct) AS wall_pct,
        unnest(max_by({bound: bound, evidence: evidence, reason: reason, ceiling: ceiling, used_pct: used_pct,
            near_pct: near_pct}, (s.total_ns, s.grid, s.block)))
    FROM shapes AS s, _step_totals AS t GROUP BY s.name
),
hot_kernels AS (
    SELECT
        *, row_number() OVER (ORDER BY total_ns DESC, name) AS turn, kernel_base_name(name) AS short_name,
        if(count(*) OVER (PARTITION BY short_name) > 1, name, short_name) AS label FROM kernel_totals
    -- The first kernel is named in any case.
    QUALIFY wall_pct >= $min_pct
        OR (turn = 1 OR turn <= 3 AND wall_pct >= $little_pct)
        AND EXISTS (FROM classify_report WHERE part = 'wall' AND verdict = 'GPU-bound')
),
first_kernel AS (
    SELECT short_name, local_bytes, registers, round(times)::BIGINT AS times, narrow_block, CASE
        WHEN near_pct >= $near_pct THEN 'near_peak'
        WHEN registers % $register_unit <> 0 THEN 'stack'
        WHEN registers <= $few_registers THEN 'spills'
        WHEN times IS NOT NULL THEN if(narrow_block IS NULL, 'slow_threads', 'narrow')
        WHEN bound = 'latency' AND total_ns / calls < $short_ns THEN 'short'
        WHEN regexp_matches(name, '(?i)gemv') THEN 'gemv'
        WHEN short_name IN (SELECT kernel FROM _repetitions WHERE is_plain) THEN 'repeated'
        WHEN bound IN ('memory', 'latency') THEN bound ELSE 'other'
    END AS cure_case FROM hot_kernels
    LEFT JOIN (FROM _own_local_memory WHERE registers < 255 AND local_bytes >= $min_local) USING (name)
    LEFT JOIN _slow_threads USING (name) WHERE turn = 1
)
SELECT
    -- Kernels at their roof still take the time: a saving below 1% of the wall time is not given.
    if(100 * sum(h.recoverable_ns) >= any_value(t.wall_ns * t.units), sum(h.recoverable_ns), NULL) AS saved_ns,
    saved_ns / any_value(t.units) AS recoverable_ns,
    least(coalesce(100 * saved_ns / any_value(t.wall_ns * t.units), sum(h.wall_pct)), max(h.busy_pct)) AS wall_pct,
    if(sum(h.wall_pct) >= $unjudged_pct AND any_value(f.cure_case <> 'near_peak' AND c.efficient_pct < $efficient_pct),
        'warning', 'info') AS severity,
    NULL AS place, f.cure_case, f.cure_case = 'spills' AS is_spill, f.cure_case = 'stack' AS is_stack,
    f.short_name AS first, f.local_bytes, f.registers, f.times, f.narrow_block, list({
        'name': h.label, 'kernel_wall_pct': h.wall_pct, 'kernel_time_pct': h.kernel_time_pct,
        'calls': h.calls / t.units, 'mean_ns': h.total_ns / h.calls, 'bound': nullif(h.bound, 'unknown'),
        'source': replace(h.evidence, 'gpu_metrics', 'GPU metrics'), 'reason': h.reason,
        'used_pct': h.used_pct, 'ceiling': replace(h.ceiling, 'SM', 'the SMs')
    } ORDER BY h.turn) FILTER (h.turn <= 3) AS kernels,
    nullif(count(*) FILTER (h.turn > 3), 0) AS more_kernels, NOT bool_or(h.near_pct IS NOT NULL) AS is_unmeasured
FROM hot_kernels AS h, first_kernel AS f, construct_coverage AS c, _step_totals AS t GROUP BY ALL
