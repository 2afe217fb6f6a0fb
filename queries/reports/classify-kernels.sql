/*
title = "What bounds each kernel"
topic = "kernels"
place = 3
question = "Is a kernel bound by compute, memory or latency, and how sure is that?"
examples = ["", "--steady --limit 0"]
main = ["kernel_time_pct", "total_ns", "calls", "bound", "evidence", "name", "confidence"]
details = ["memory_level", "sms_active_pct"]
description = """
Says for each kernel and launch configuration whether compute, memory or latency bounds it, by the best evidence
there is. ncu: the throughputs that ncu measured. gpu_metrics: samples whose whole interval is filled by executions
of the kernel, pooled over all its launches; the SM side is the busier of issue slots and tensor cores, the memory
side is DRAM. If one side is more than 20 points above the other, that side is the bound (compute or memory);
otherwise both below 40% means latency, and both above 60% balanced. Samples do not cover L1, L2, shared memory or
slow pipes (fp64, special functions), so DRAM or tensor cores below 40% and issue slots below 60% prove a bound
only where most SMs have no work. launch shape and name: what the kernel's size, occupancy and family make likely,
together with the samples if there are any; such an answer is inferred."""
reading = """
compute: fewer or cheaper operations, tensor cores, lower precision. memory: fewer bytes, fusion, better reuse and
coalescing. latency: more parallelism or fewer launches; see occupancy and per-token. balanced: near the peak on
both sides; change the algorithm, or accept it. If a kernel's bound is inferred or unknown and the kernel takes much
of the time, profile it with ncu."""
empty = "No kernels are recorded in this scope"
advice = "if the program did use the GPU, capture with: nsys profile -t cuda"

[params.margin]
default = 20.0
least = 0
help = "Points by which one side must exceed the other to bound the kernel (20: the usual reading of ncu's throughputs)"

[params.low]
default = 40.0
least = 0
help = "Percent of peak: both sides below it mean latency, and below which samples do not prove a bound"

[params.high]
default = 60.0
least = 0
help = "Percent of peak: both sides above it mean balanced, and above which confidence is high"

[params.min_samples]
default = 4
least = 1
help = "Minimum number of samples to judge a kernel by them"

[params.launch_cost_ns]
default = 5_000
help = "A kernel shorter than this takes less than launching it, so latency bounds it"

[columns]
name = "The kernel"
grid = "Blocks in the grid, x × y × z"
block = "Threads in a block, x × y × z"
calls = "Executions on the GPU"
total_ns = "Sum of their durations"
avg_ns = "Mean duration"
kernel_time_pct = "Share of all kernel time in scope"
bound = "compute, memory, latency, balanced or unknown"
confidence = "high or medium where it was measured, inferred where it was not, NULL if unknown"
evidence = "What the answer is based on: ncu, gpu_metrics, launch shape, name"
sm_pct = """\
How busy the SMs were, as a share of their peak: by ncu, else the busier of issue slots and tensor cores as sampled"""
memory_pct = "How busy memory was, as a share of its peak: by ncu, else DRAM as sampled"
memory_level = """\
Which memory level bounds it, by ncu: DRAM, L2 misses (more DRAM traffic than necessary), L2, L1; NULL where unknown"""
sms_active_pct = "Share of SMs that had work, as sampled"
samples = "Samples of GPU metrics taken while only this kernel ran"
occupancy_pct = "Theoretical occupancy"
waves_per_sm = "How often the grid fills the GPU"
family = "What the kernel does, by its name"
reason = "The numbers, or the rule, behind the answer"

[notes]
no_samples.text = """
the trace has no GPU metrics: what bounds a kernel is inferred from its launch and its name; capture with
--gpu-metrics-devices=all to measure it"""
no_samples.query = """
SELECT count(*) AS kernels FROM answer
HAVING count(*) > 0 AND NOT EXISTS (FROM gpu_samples) AND count(*) FILTER (evidence = 'ncu') < count(*)"""

few_samples.text = """
GPU metrics samples cover {sampled} of {kernels:kernel}: short ones need a higher --gpu-metrics-frequency"""
few_samples.query = """
SELECT count(*) FILTER (samples >= $min_samples) AS sampled, count(*) AS kernels
FROM answer HAVING sampled < kernels AND EXISTS (FROM gpu_samples)"""

waiting.use = "waiting_kernels"
green.use = "green_contexts"
graphs.use = "whole_graphs"
*/
WITH shapes AS (FROM launch_shapes),
shapes_with_evidence AS (
    SELECT
        l.*, n.name, n.family, s.samples, s.sms_active_pct, s.issue_pct, s.tensor_pct, s.dram_pct, p.l2_pct, p.l1_pct,
        p.memory_level,
        r.bound AS usual_bound, r.because,
        p.sm_pct IS NOT NULL AND p.memory_pct IS NOT NULL AS by_ncu,
        NOT by_ncu AND s.samples >= $min_samples AND s.issue_pct IS NOT NULL AND s.dram_pct IS NOT NULL AS by_samples,
        CASE
            WHEN by_ncu THEN p.sm_pct WHEN s.issue_pct IS NOT NULL THEN greatest(s.issue_pct, s.tensor_pct)
        END AS sm_pct,
        CASE WHEN by_ncu THEN p.memory_pct ELSE s.dram_pct END AS memory_pct,
        CASE WHEN by_ncu THEN p.dram_pct ELSE s.dram_pct END AS memory_dram_pct
    FROM shapes AS l
    LEFT JOIN kernel_names AS n USING (name_id)
    LEFT JOIN _sampled_shapes AS s ON s.shape_id = l.shape_id AND s.model_id IS NOT DISTINCT FROM l.model_id
    LEFT JOIN _ncu_shapes AS p USING (name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z)
    LEFT JOIN _usual_bounds AS r
        ON r.name_id = l.name_id AND l.avg_ns >= r.min_duration_ns
        AND (r.bound <> 'compute' OR l.blocks_count >= l.sm_count)
        -- A word in the name of a kernel that no known library has says nothing; the blocks of a grid in x are tiles of
        -- queries, and with one tile attention may be of a single query.
        AND n.provenance <> 'hand-written' AND NOT (r.bound = 'compute' AND n.family = 'attention' AND l.grid_x = 1)
),
-- The case that decides about each shape; its answer, evidence and reason follow below.
shapes_with_case AS (
    SELECT
        *,
        CASE
            WHEN by_ncu OR by_samples THEN bound_of(sm_pct, memory_pct, margin := $margin, low := $low, high := $high)
        END AS measured_bound,
        CASE
            WHEN by_ncu THEN 'ncu'
            -- Unsampled parts can only make either side busier. Busy tensor cores, busy DRAM and very busy issue slots
            -- leave no room for another bound; half-busy issue slots do (bank conflicts, L2). SMs without work keep
            -- nothing busy.
            WHEN by_samples AND measured_bound = 'compute' AND (tensor_pct >= $low OR issue_pct >= $high) THEN 'sampled'
            WHEN by_samples AND measured_bound = 'memory' AND memory_pct >= $low THEN 'sampled'
            WHEN by_samples AND measured_bound = 'balanced' THEN 'sampled'
            WHEN by_samples AND measured_bound = 'latency' AND sms_active_pct < $low THEN 'idle SMs'
            WHEN by_samples AND measured_bound = 'unknown'
                AND (
                    (usual_bound = 'memory' AND memory_pct >= sm_pct)
                    OR (usual_bound = 'compute' AND sm_pct >= memory_pct)
                )
                THEN 'name'
            WHEN by_samples AND measured_bound = 'unknown' THEN 'between'
            WHEN by_samples AND measured_bound IN ('compute', 'memory') THEN 'weak'
            WHEN by_samples AND occupancy_pct >= 50 AND waves_per_sm >= 1 THEN 'waiting warps'
            WHEN by_samples AND occupancy_pct IS NOT NULL THEN 'few warps'
            WHEN by_samples THEN 'between'
            WHEN avg_ns < $launch_cost_ns THEN 'short'
            WHEN 100 * blocks_count < $low * sm_count THEN 'few blocks'
            WHEN usual_bound IS NOT NULL THEN 'name'
            ELSE 'nothing'
        END AS deciding_case
    FROM shapes_with_evidence
),
shapes_with_bound AS (
    SELECT
        *,
        CASE
            WHEN deciding_case IN ('ncu', 'sampled', 'idle SMs', 'weak') THEN measured_bound
            WHEN deciding_case = 'waiting warps' THEN 'memory'
            WHEN deciding_case IN ('few warps', 'short', 'few blocks') THEN 'latency'
            WHEN deciding_case = 'name' THEN usual_bound
            ELSE 'unknown'
        END AS bound,
        CASE
            WHEN deciding_case = 'ncu' THEN 'ncu'
            WHEN deciding_case IN ('sampled', 'idle SMs', 'between') THEN 'gpu_metrics'
            WHEN deciding_case IN ('weak', 'waiting warps', 'few warps', 'short', 'few blocks') THEN 'launch shape'
            WHEN deciding_case = 'name' THEN 'name'
        END AS evidence,
        format('{:.0f}%', sm_pct) AS sm_text,
        format('DRAM {:.0f}%', memory_dram_pct) AS dram_text
    FROM shapes_with_case
)
SELECT
    coalesce(name, '(no name)') AS name,
    grid_x || 'x' || grid_y || 'x' || grid_z AS grid,
    block_x || 'x' || block_y || 'x' || block_z AS block,
    calls,
    total_ns,
    avg_ns,
    100.0 * total_ns / nullif((SELECT sum(total_ns) FROM shapes), 0) AS kernel_time_pct,
    bound,
    CASE
        WHEN bound = 'unknown' THEN NULL
        WHEN deciding_case = 'ncu' OR deciding_case = 'idle SMs' THEN 'high'
        WHEN deciding_case = 'sampled' AND greatest(sm_pct, memory_pct) >= $high THEN 'high'
        WHEN deciding_case = 'sampled' THEN 'medium'
        ELSE 'inferred'
    END AS confidence,
    evidence,
    sm_pct,
    memory_pct,
    CASE WHEN bound = 'memory' AND evidence = 'ncu' THEN memory_level END AS memory_level,
    sms_active_pct,
    coalesce(samples, 0)::BIGINT AS samples,
    occupancy_pct,
    waves_per_sm,
    coalesce(family, 'other') AS family,
    CASE
        WHEN deciding_case = 'ncu'
            THEN 'SM ' || sm_text || ', '
                || concat_ws(', ', dram_text, format('L2 {:.0f}%', l2_pct), format('L1 {:.0f}%', l1_pct))
            || CASE WHEN bound = 'memory' THEN coalesce('; bound by ' || memory_level, '') ELSE '' END
        WHEN deciding_case = 'sampled' AND tensor_pct > issue_pct THEN 'tensor cores ' || sm_text || ', ' || dram_text
        WHEN deciding_case = 'sampled' THEN 'issue slots ' || sm_text || ', ' || dram_text
        WHEN deciding_case = 'idle SMs' THEN format('only {:.0f}% of the SMs have work', sms_active_pct)
        WHEN deciding_case = 'between' THEN 'SM ' || sm_text || ', ' || dram_text || ': neither side stands out'
        WHEN deciding_case = 'name' AND by_samples THEN 'SM ' || sm_text || ', ' || dram_text || '; ' || because
        WHEN deciding_case = 'name' THEN because
        WHEN deciding_case = 'weak'
            THEN 'SM ' || sm_text || ', ' || dram_text || ': the busier side, but L1, L2 and slow pipes are not sampled'
        WHEN deciding_case = 'waiting warps'
            THEN 'SM ' || sm_text || ', ' || dram_text
                || ': warps fill the SMs and wait, likely for L1, L2 or shared memory'
        WHEN deciding_case = 'few warps' THEN 'SM ' || sm_text || ', ' || dram_text || ': too few warps to hide latency'
        WHEN deciding_case = 'short' THEN 'shorter than launching it'
        WHEN deciding_case = 'few blocks' THEN counted_text(blocks_count, 'block') || ' for ' || sm_count || ' SMs'
        ELSE 'too few samples, and nothing is known by the name'
    END AS reason
FROM shapes_with_bound
ORDER BY
    total_ns DESC, name, blocks_count DESC, grid, threads_per_block DESC, block, registers_per_thread,
    static_shared_bytes, dynamic_shared_bytes, local_per_thread_bytes, cluster_x, cluster_y, cluster_z, gpu, model_id
