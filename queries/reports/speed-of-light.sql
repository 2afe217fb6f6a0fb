/*
title = "Speed of light: use of the machine, and the rest of the time"
topic = "kernels"
place = 5
question = "What share of the machine is used, and where does the rest of the time go?"
examples = ["", "--parameters 8000000000 --training --batch 8 --tokens-per-step 2048", "--by range"]
main = ["name", "count", "wall_ns", "mfu_pct", "tensor_pct", "dram_pct", "sms_active_pct", "bar"]
details = [
    "mfu_pct", "tensor_pct", "dram_pct", "sms_active_pct", "issue_pct", "pcie_in_pct", "pcie_out_pct",
    "h2d_bytes_per_s", "d2h_bytes_per_s", "nccl_bytes_per_s", "clock_hz", "clock_pct", "samples", "flop_count",
    "flop_from", "tflop_per_s", "precision", "peak_tflop_per_s", "known_flop_pct", "gpus", "other_ns",
]
description = """
One row for the steady steps (see steps), or one per step, phase, NVTX range or loop with --by. A range is the time
from the first to the last operation that was launched in it. Times are means over the executions and GPUs, and add
up to the wall time; time in which two kinds of work run counts as the one that stands first: kernels, then
communication, then copies. Kernels at the roof reach --roof percent of a peak: by ncu, by GPU metrics samples in
which only they ran, or by operations known from NVTX sizes or ncu. memory_bound are kernels that use memory more
than compute, where nothing was measured by their names; below_roof are all others that were measured; unrated those
of which neither measurements nor name say anything; small_kernels are shorter than --small, on average. mfu_pct is
model FLOPs utilization: operations per step, divided by the step time and the peak of all GPUs. Operations are
--flops-per-step, or 2 per parameter and token (6 with --training) with --parameters, where the tokens of a step
come from --tokens, or --batch and --tokens-per-step; else the sum over the kernels, if they are known for all
matrix products and attention in it. The peak is that of the precision in which matrix products and attention spend
most time, at the maximum clock, unless --peak gives it. tensor_pct, dram_pct, sms_active_pct, issue_pct, pcie and
clock_hz are plain means over the GPU metrics samples whose interval starts in the row's time; NULL where there is
no sample."""
reading = """
Follow the largest part of the bar: idle (.): gaps, diagnose. small kernels (s): fusion, graph-candidates.
communication (C): collectives, ranks. memory-bound (M): fewer bytes: fuse, quantise. below the roof (B): classify-
kernels, roofline. unrated (?): measure it with ncu plan, or capture GPU metrics. at the roof (R): leave it, or do
less work. x: copies."""
empty = "Nothing ran on a GPU in this scope, or it has no such rows: steps, phases, ranges, loops."

[params.by]
default = "run"
choices = ["run", "step", "phase", "range", "loop"]
help = "One row for the steady steps, or one for each step, phase, NVTX range or loop"

[params.flops_per_step]
type = "number"
help = "Operations of a step, such as 1.2e15, by your own count"

[params.parameters]
type = "number"
help = "Parameters of the model that each token uses, such as 8e9 or 8B; on the command line also its config.json"

[params.training]
default = false
help = "A step has a backward pass: 6 operations per parameter and token instead of 2"

[params.precision]
default = "auto"
choices = ["auto", "fp64", "fp64_tensor", "fp32", "tf32", "fp16", "fp8", "fp4", "int8"]
help = "The precision whose peak to compare with; auto takes the one with most time in matrix products and attention"

[params.gpu]
type = "text"
help = "The GPU, such as H100, if the trace does not describe it"

[params.peak]
type = "number"
help = "Peak of a GPU in 10^12 operations per second, such as 989 for an H100 by its data sheet"

[params.roof]
default = 80.0
least = 0
help = "Share of a peak from which a kernel is at the roof: tensor cores reach about 90% of theirs"

[params.small_ns]
default = 5_000
least = 0
help = "A kernel that is shorter, on average, takes about as long to launch"

[shares]
mfu_pct = "the peak of the GPUs"
tensor_pct = "its peak"
dram_pct = "its peak"
sms_active_pct = "the SMs"
issue_pct = "the issue slots"
pcie_in_pct = "its peak"
pcie_out_pct = "its peak"
clock_pct = "the maximum clock"
known_flop_pct = "the time of matrix products and attention"

[columns]
name = "The steady steps, or which step, phase, range (# stands for numbers) or loop"
count = "How many there are"
wall_ns = "Mean time of one"
mfu_pct = "Model FLOPs utilization"
tensor_pct = "Activity of the tensor cores, as sampled"
dram_pct = "Use of the memory bandwidth, as sampled"
sms_active_pct = "Share of SMs that had work, as sampled"
bar = """\
The parts of the time, a character for each 5%: R at the roof, B below it, M memory-bound, ? unrated, s small \
kernels, C communication, x copies, o other work, . idle"""
at_roof_ns = "Kernels at the roof"
below_roof_ns = "Kernels below the roof, as measured, that are not memory-bound"
memory_bound_ns = "Memory-bound kernels below the roof, and memsets and copies within the GPU's memory"
unrated_ns = "Kernels of which nothing is known, and graphs that ran as a whole"
small_kernels_ns = "Small kernels"
communication_ns = "NCCL kernels while no other kernel ran"
copy_ns = "Copies between host and GPU, or between GPUs, while no kernel ran"
other_ns = "Work outside the scope"
idle_ns = "The GPU was idle"
issue_pct = "Use of the SMs' issue slots, as sampled"
pcie_in_pct = "PCIe, into the GPU, as sampled"
pcie_out_pct = "PCIe, out of the GPU, as sampled"
h2d_bytes_per_s = "Bytes of copies from host to device, per second of wall time and GPU"
d2h_bytes_per_s = "Bytes of copies from device to host, per second of wall time and GPU"
nccl_bytes_per_s = "Sizes of NCCL's messages, per second of wall time and GPU; NULL unless all are known"
clock_hz = "Clock of the SMs, as sampled"
clock_pct = "SM clock as a share of the maximum clock"
samples = "GPU metrics samples in its time, over all executions and GPUs"
flop_count = "Operations of one execution, on all GPUs"
flop_from = "Where the operations come from: given, parameters, kernels"
tflop_per_s = "Attained, in 10^12 operations per second, of all GPUs"
precision = "The precision whose peak is compared with"
peak_tflop_per_s = "Peak of a GPU, in 10^12 operations per second"
known_flop_pct = "Share of the time of matrix products and attention whose operations are known"
gpus = "GPUs that it used"

[notes]
steps.text = """
steps are <the NVTX ranges {range_name}><the iterations of loop {step_loop}><, {mark}>, of process {process_id};
{confidence} confidence"""
steps.query = "FROM _step_source WHERE method <> 'count' AND $by IN ('run', 'step')"

bar.text = "bar, a character for 5% of the time: {parts}"
bar.query = """
SELECT string_agg(letter || ' ' || part, ', ' ORDER BY place) AS parts
FROM (VALUES
    (1, 'R', 'at the roof'), (2, 'B', 'below it'), (3, 'M', 'memory-bound'), (4, '?', 'unrated'),
    (5, 's', 'small kernels'), (6, 'C', 'communication'), (7, 'x', 'copies'), (8, 'o', 'other'), (9, '.', 'idle')
) AS p(place, letter, part)
WHERE EXISTS (FROM answer WHERE contains(bar, letter))
HAVING count(*) > 0"""

peak.text = [[
    "the peak is {peak} TFLOP/s in {precision} per GPU: {?is_given}as given",
    """the peak is {peak} TFLOP/s in {precision} per GPU: SMs × maximum clock × operations per cycle; data sheets state
    it at a lower clock: --peak""",
]]
peak.query = """
SELECT format('{}', round(max(peak_tflop_per_s), 1)) AS peak, max(precision) AS precision, $peak IS NOT NULL AS is_given
FROM answer WHERE mfu_pct IS NOT NULL HAVING count(*) > 0"""

tokens.text = """
{operations} operations per parameter and token, {tokens_per_step:token} in a step (--tokens, or --batch and
--tokens-per-step)"""
tokens.query = """
SELECT if($training, 6, 2) AS operations, round(tokens_per_step, 2) AS tokens_per_step
FROM step_method WHERE $parameters IS NOT NULL AND $flops_per_step IS NULL AND $by IN ('run', 'step')"""

gpu.text = [[
    "{?is_described}the trace describes its GPU, so --gpu is not used",
    "the trace does not describe its GPU: peaks are those of {name}",
    "no GPU {gpu} is known; there are: {names}",
]]
gpu.query = """
SELECT
    EXISTS (FROM gpus) AS is_described, $gpu AS gpu, (SELECT list(name) FROM gpu_products()) AS names,
    (SELECT name FROM gpu_products() WHERE contains(lower(name), lower($gpu)) ORDER BY len(name), name LIMIT 1) AS name
WHERE $gpu IS NOT NULL"""

no_gpu.text = "the trace does not describe its GPU: name it with --gpu, such as --gpu H100"
no_gpu.query = """
SELECT true AS is_unknown
WHERE $gpu IS NULL AND $peak IS NULL AND NOT EXISTS (FROM gpus) AND EXISTS (FROM answer)"""

no_flops.text = "the operations of a step are unknown: --flops-per-step N, or --parameters N"
no_flops.query = """
SELECT count(*) AS rows
FROM answer HAVING count(*) > 0 AND count(mfu_pct) = 0 AND $flops_per_step IS NULL AND $parameters IS NULL"""

no_samples.text = """
no GPU metrics were sampled, which is not the same as no activity: capture with --gpu-metrics-devices=all"""
no_samples.query = "SELECT count(*) AS rows FROM answer HAVING count(*) > 0 AND NOT EXISTS (FROM gpu_samples)"

few_samples.text = """
{rows:row has|rows have} less than 10 samples per execution: sample at {frequency_id} Hz (--gpu-metrics-frequency; at
most 200000)"""
few_samples.query = """
SELECT
    count(*) AS rows, least(200000, ceil(1e10 / min(wall_ns) / 1000) * 1000)::BIGINT AS frequency_id
FROM answer WHERE samples < 10 * count * gpus
HAVING count(*) > 0 AND EXISTS (FROM gpu_samples)"""

clock.text = "the SMs ran at {clock} of {max_clock} GHz"
clock.query = """
SELECT
    round(min(clock_hz) / 1e9, 2) AS clock, round(min(100 * clock_hz / clock_pct) / 1e9, 2) AS max_clock
FROM answer WHERE clock_pct < 95 HAVING count(*) > 0"""

graphs.use = "whole_graphs"
*/
WITH process_gpus AS MATERIALIZED (
    SELECT DISTINCT process_id, gpu_of(process_id, device_id) AS gpu_id FROM gpu_ops
),
steady AS (
    FROM steps WHERE phase = 'steady'
),
-- The operations of each NVTX range: from the first start to the last end.
range_times AS (
    SELECT r.name, r.process_id, r.range_id, min(w.start_ns) AS start_ns, max(w.end_ns) AS end_ns
    FROM (
        SELECT folded_name(name) AS name, process_id, thread_id, range_id, start_ns, end_ns
        FROM nvtx_nesting WHERE $by = 'range' AND NOT starts_with(name, 'nccl')
    ) AS r
    JOIN (FROM gpu_ops_in_nvtx WHERE $by = 'range') AS w
        ON w.process_id = r.process_id AND w.thread_id = r.thread_id
        AND w.api_start_ns >= r.start_ns AND w.api_start_ns < coalesce(r.end_ns, 9223372036854775807)
    GROUP BY ALL
),
intervals AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY name, start_ns, end_ns) AS number, *
    FROM (
        SELECT 'steady steps' AS name, 0 AS place, process_id, start_ns, end_ns FROM steady WHERE $by = 'run'
        UNION ALL
        SELECT 'the whole scope', 0, NULL, start_ns, end_ns FROM wall WHERE $by = 'run' AND NOT EXISTS (FROM steady)
        UNION ALL
        SELECT 'step ' || step, step, process_id, start_ns, end_ns
        FROM steps WHERE $by = 'step' AND phase = 'steady'
        UNION ALL
        SELECT
            phase || coalesce(', batch ' || batch_size, ''), coalesce(batch_size, 0), process_id, start_ns, end_ns
        FROM phase_steps WHERE $by = 'phase'
        UNION ALL
        SELECT 'loop ' || loop, 0, (SELECT any_value(process_id) FROM loops), start_ns, end_ns
        FROM loop_iterations WHERE $by = 'loop'
        UNION ALL
        SELECT name, 0, process_id, start_ns, end_ns FROM range_times
    )
    WHERE end_ns > start_ns
),
interval_gpus AS (
    SELECT DISTINCT i.number, g.gpu_id
    FROM intervals AS i JOIN process_gpus AS g ON i.process_id IS NULL OR g.process_id = i.process_id
),
marks AS MATERIALIZED (
    SELECT i.number, g.gpu_id, unnest([i.start_ns, i.end_ns]) AS at_ns, unnest([-1, 1]) AS sign
    FROM intervals AS i JOIN interval_gpus AS g USING (number)
),
rated_shapes AS MATERIALIZED (
    SELECT
        *,
        CASE
            WHEN avg_ns < $small_ns THEN 's'
            WHEN roof_pct >= $roof THEN 'R'
            WHEN bound = 'memory' THEN 'M'
            WHEN roof_pct IS NOT NULL THEN 'B'
            ELSE '?'
        END AS class
    FROM _rated_shapes
),
kernel_work AS MATERIALIZED (
    SELECT
        gpu_of(k.process_id, k.device_id) AS gpu_id, k.start_ns, greatest(k.start_ns, k.end_ns) AS end_ns, r.family,
        r.precision, r.flop_count, if(r.family = 'comm', 'C', coalesce(r.class, '?')) AS class
    FROM kernel_events AS k
    LEFT JOIN gpu_limits AS m ON m.gpu_id = gpu_of(k.process_id, k.device_id)
    LEFT JOIN rated_shapes AS r ON r.shape_id = k.shape_id AND r.model_id IS NOT DISTINCT FROM m.model_id
),
work AS (
    SELECT gpu_id, start_ns, end_ns, class, if(class = 'C', 1, 0) AS level FROM kernel_work
    UNION ALL
    SELECT
        gpu_of(process_id, device_id), start_ns, greatest(start_ns, end_ns),
        CASE WHEN kind = 'graph' THEN '?' WHEN kind = 'copy' AND label <> 'D2D copy' THEN 'x' ELSE 'M' END AS class,
        if(class = 'x', 2, 0)
    FROM gpu_ops WHERE kind <> 'kernel'
),
running_ends AS (
    SELECT
        *,
        coalesce(max(end_ns) FILTER (level = 0) OVER along, start_ns) AS compute_end_ns,
        coalesce(max(end_ns) FILTER (level <= 1) OVER along, start_ns) AS kernels_end_ns,
        coalesce(max(end_ns) OVER along, start_ns) AS all_end_ns
    FROM work
    WINDOW along AS (PARTITION BY gpu_id ORDER BY start_ns, level ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
-- What an operation adds to its level, and what it takes from levels that stand behind it, as in `step_budget`.
pieces AS (
    SELECT gpu_id, class, 1 AS sign, greatest(start_ns, compute_end_ns) AS start_ns, end_ns
    FROM running_ends WHERE level = 0
    UNION ALL
    SELECT gpu_id, 'C', 1, greatest(start_ns, kernels_end_ns), end_ns FROM running_ends WHERE level = 1
    UNION ALL
    SELECT gpu_id, 'C', -1, greatest(start_ns, compute_end_ns), least(end_ns, kernels_end_ns)
    FROM running_ends WHERE level = 0
    UNION ALL
    SELECT gpu_id, 'x', 1, greatest(start_ns, all_end_ns), end_ns FROM running_ends WHERE level = 2
    UNION ALL
    SELECT gpu_id, 'x', -1, greatest(start_ns, kernels_end_ns), least(end_ns, all_end_ns)
    FROM running_ends WHERE level <= 1
    UNION ALL
    SELECT gpu_id, 'busy', 1, start_ns, end_ns FROM gpu_busy
),
-- The time up to an instant follows from the last piece that starts before it.
running_times AS MATERIALIZED (
    SELECT
        gpu_id, class, sign, start_ns, end_ns,
        sum(end_ns - start_ns) OVER (
            PARTITION BY gpu_id, class, sign ORDER BY start_ns ROWS UNBOUNDED PRECEDING
        ) AS until_ns
    FROM pieces WHERE end_ns > start_ns
),
class_times AS (
    SELECT
        m.number, m.class, sum(m.sign * m.class_sign * (t.until_ns - greatest(t.end_ns - m.at_ns, 0))) AS time_ns
    FROM (
        SELECT k.*, c.class, c.sign AS class_sign
        FROM marks AS k CROSS JOIN (SELECT DISTINCT class, sign FROM running_times) AS c
    ) AS m
    ASOF JOIN running_times AS t
        ON t.gpu_id = m.gpu_id AND t.class = m.class AND t.sign = m.class_sign AND t.start_ns <= m.at_ns
    GROUP BY m.number, m.class
),
-- What is counted where it starts: operations, bytes and samples.
events AS (
    SELECT
        gpu_id, start_ns, unnest(['flop', 'known', 'all']) AS metric,
        unnest([
            flop_count,
            if(flop_count IS NOT NULL AND family IN ('gemm', 'attention'), end_ns - start_ns, 0),
            if(family IN ('gemm', 'attention'), end_ns - start_ns, 0)
        ])::DOUBLE AS value
    FROM kernel_work
    UNION ALL
    SELECT gpu_of(process_id, device_id), start_ns, copy_kind, size_bytes FROM memcpys WHERE copy_kind IN ('H2D', 'D2H')
    UNION ALL
    SELECT gpu_id, start_ns, unnest(['nccl', 'nccl kernels']), unnest([bytes, 1]) FROM nccl_kernels
    UNION ALL
    SELECT
        gpu_id, start_ns,
        unnest(['samples', 'tensor', 'dram', 'sms', 'issue', 'pcie in', 'pcie out', 'clock']),
        unnest([1, tensor_pct, dram_pct, sms_active_pct, issue_pct, pcie_in_pct, pcie_out_pct, clock_hz])
    FROM gpu_samples
),
running_sums AS MATERIALIZED (
    SELECT
        gpu_id, metric, start_ns,
        sum(value) OVER along AS total, sum(events) OVER along AS events
    FROM (
        SELECT gpu_id, metric, start_ns, sum(value) AS value, count(value) AS events
        FROM events WHERE value IS NOT NULL GROUP BY ALL
    )
    WINDOW along AS (PARTITION BY gpu_id, metric ORDER BY start_ns ROWS UNBOUNDED PRECEDING)
),
counts AS (
    SELECT m.number, m.metric, sum(m.sign * s.total) AS total, sum(m.sign * s.events)::BIGINT AS events
    FROM (SELECT * FROM marks CROSS JOIN (SELECT DISTINCT metric FROM running_sums)) AS m
    ASOF JOIN running_sums AS s ON s.gpu_id = m.gpu_id AND s.metric = m.metric AND s.start_ns < m.at_ns
    GROUP BY m.number, m.metric
),
main_precision AS (
    SELECT coalesce(
        nullif($precision, 'auto'),
        (
            SELECT precision FROM kernel_work WHERE family IN ('gemm', 'attention') AND precision IS NOT NULL
            GROUP BY precision ORDER BY sum(end_ns - start_ns) DESC, precision LIMIT 1
        )
    ) AS precision
),
peak AS (
    SELECT
        any_value(m.precision) AS precision,
        coalesce($peak, min(k.tflop_per_s), any_value(g.tflop_per_s)) AS tflop_per_s,
        coalesce((SELECT min(clock_hz) FROM gpus SEMI JOIN used_gpus USING (gpu_id)), any_value(g.clock_hz)) AS clock_hz
    FROM main_precision AS m
    LEFT JOIN (FROM gpu_peaks SEMI JOIN used_gpus USING (gpu_id)) AS k USING (precision)
    LEFT JOIN (
        SELECT r.precision, p.sm_count * p.clock_hz * r.flops_per_cycle / 1e12 AS tflop_per_s, p.clock_hz
        FROM (FROM gpu_products() WHERE contains(lower(name), lower($gpu)) ORDER BY len(name), name LIMIT 1) AS p
        JOIN peak_rates() AS r USING (compute_capability)
    ) AS g USING (precision)
),
-- The group's totals, over executions and GPUs.
interval_totals AS (
    SELECT i.name, i.place, i.number, i.start_ns, i.end_ns - i.start_ns AS wall_ns, count(*) AS gpus
    FROM intervals AS i JOIN interval_gpus USING (number)
    GROUP BY ALL
),
totals AS (
    SELECT
        name, place, count(*) AS count, avg(wall_ns) AS wall_ns, max(gpus) AS gpus, min(start_ns) AS start_ns,
        sum(wall_ns * gpus)::DOUBLE AS gpu_ns
    FROM interval_totals GROUP BY ALL
),
class_totals AS (
    SELECT name, map_from_entries(list((class, time_ns))) AS times
    FROM (
        SELECT i.name, c.class, sum(c.time_ns)::DOUBLE AS time_ns
        FROM class_times AS c JOIN intervals AS i USING (number)
        GROUP BY ALL
    ) GROUP BY name
),
count_totals AS (
    SELECT name, map_from_entries(list((metric, total))) AS sums, map_from_entries(list((metric, events))) AS events
    FROM (
        SELECT i.name, c.metric, sum(c.total)::DOUBLE AS total, sum(c.events)::BIGINT AS events
        FROM counts AS c JOIN intervals AS i USING (number) GROUP BY ALL
    ) GROUP BY name
),
figures AS (
    SELECT
        t.*, p.precision, p.tflop_per_s AS peak_tflop_per_s, p.clock_hz AS max_clock_hz, n.sums, n.events,
        -- Scales a total to the mean of one execution on one GPU.
        t.wall_ns / t.gpu_ns AS each,
        coalesce(c.times['R'], 0) * each AS at_roof_ns,
        coalesce(c.times['B'], 0) * each AS below_roof_ns,
        coalesce(c.times['M'], 0) * each AS memory_bound_ns,
        coalesce(c.times['?'], 0) * each AS unrated_ns,
        coalesce(c.times['s'], 0) * each AS small_kernels_ns,
        coalesce(c.times['C'], 0) * each AS communication_ns,
        coalesce(c.times['x'], 0) * each AS copy_ns,
        coalesce(c.times['busy'], 0) * each AS busy_ns,
        greatest(0, round(busy_ns - at_roof_ns - below_roof_ns - memory_bound_ns - unrated_ns - small_kernels_ns
            - communication_ns - copy_ns, 3)) AS other_ns,
        100 * n.sums['known'] / nullif(n.sums['all'], 0) AS known_flop_pct,
        $by IN ('run', 'step') AND name <> 'the whole scope' AS is_step,
        CASE
            WHEN is_step AND $flops_per_step IS NOT NULL THEN 'given'
            WHEN is_step AND $parameters IS NOT NULL THEN 'parameters'
            WHEN known_flop_pct >= 99.5 THEN 'kernels'
        END AS flop_from,
        CASE flop_from
            WHEN 'given' THEN $flops_per_step::DOUBLE
            WHEN 'parameters'
                THEN if($training, 6, 2) * $parameters * (SELECT tokens_per_step FROM step_method)
            WHEN 'kernels' THEN n.sums['flop'] / t.count
        END AS flop_count
    FROM totals AS t
    CROSS JOIN peak AS p
    LEFT JOIN class_totals AS c USING (name)
    LEFT JOIN count_totals AS n USING (name)
)
SELECT
    name, count, wall_ns,
    100 * flop_count / wall_ns / 1e3 / (peak_tflop_per_s * gpus) AS mfu_pct,
    sums['tensor'] / nullif(events['tensor'], 0) AS tensor_pct,
    sums['dram'] / nullif(events['dram'], 0) AS dram_pct,
    sums['sms'] / nullif(events['sms'], 0) AS sms_active_pct,
    left(
        repeat('R', round(20 * at_roof_ns / wall_ns)::INTEGER)
            || repeat('B', round(20 * below_roof_ns / wall_ns)::INTEGER)
            || repeat('M', round(20 * memory_bound_ns / wall_ns)::INTEGER)
            || repeat('?', round(20 * unrated_ns / wall_ns)::INTEGER)
            || repeat('s', round(20 * small_kernels_ns / wall_ns)::INTEGER)
            || repeat('C', round(20 * communication_ns / wall_ns)::INTEGER)
            || repeat('x', round(20 * copy_ns / wall_ns)::INTEGER)
            || repeat('o', round(20 * other_ns / wall_ns)::INTEGER) || repeat('.', 20),
        20
    ) AS bar,
    at_roof_ns, below_roof_ns, memory_bound_ns, unrated_ns, small_kernels_ns, communication_ns, copy_ns, other_ns,
    wall_ns - busy_ns AS idle_ns,
    sums['issue'] / nullif(events['issue'], 0) AS issue_pct,
    sums['pcie in'] / nullif(events['pcie in'], 0) AS pcie_in_pct,
    sums['pcie out'] / nullif(events['pcie out'], 0) AS pcie_out_pct,
    coalesce(sums['H2D'], 0) / gpu_ns * 1e9 AS h2d_bytes_per_s,
    coalesce(sums['D2H'], 0) / gpu_ns * 1e9 AS d2h_bytes_per_s,
    CASE WHEN events['nccl'] = events['nccl kernels'] THEN sums['nccl'] / gpu_ns * 1e9 END AS nccl_bytes_per_s,
    sums['clock'] / nullif(events['clock'], 0) AS clock_hz,
    100 * sums['clock'] / nullif(events['clock'], 0) / max_clock_hz AS clock_pct,
    coalesce(events['samples'], 0)::BIGINT AS samples,
    flop_count, flop_from,
    flop_count / wall_ns / 1e3 AS tflop_per_s,
    precision, peak_tflop_per_s, known_flop_pct, gpus
FROM figures
ORDER BY place, CASE WHEN $by IN ('range', 'loop') THEN -wall_ns * count END, start_ns, name
