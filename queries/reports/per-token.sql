/*
title = "Cost per token or step"
topic = "steps"
place = 1
in_help = true
question = "What does one token (or training step) cost: launches, kernels, busy time, idle time, syncs, copies?"
examples = ["", "--tokens 128"]
aliases = ["per-step"]
main = ["metric", "per_token", "wall_pct", "median", "p5", "p95", "stddev"]
description = """
The budget of a steady step: what each step contains, as statistics over the steps, and per token. The steps are
those of the report steps, which says how they are found, what their wall time is, and what belongs to a step;
warm-up, prefill and the last step, whose end is not recorded, are left out. A step makes one token unless
--tokens-per-step, --batch or --tokens (all tokens, divided by the steps) say otherwise. Where no steps were found,
the whole scope is divided by --tokens. launch_calls are the calls that put kernels on the GPU, including graph
launches: one graph launch runs many kernels. Calls inside other calls are not counted, and their time is not added
to api_ns. gpu_busy_ns + gpu_idle_ns is wall_ns, and the idle_ rows, which are the parts of classify and diagnose,
add up to gpu_idle_ns. tokens_per_s is that of the mean wall time, under the profiler. With --model-bytes,
memory_floor_ns is how long the GPU's memory takes to deliver them; the bandwidth is that of the GPU in the trace,
or --bandwidth."""
reading = """
gpu_idle_ns is what can be saved without making a kernel faster: see gaps and syncs. Hundreds of launch calls per
token at a kernel_avg_ns of a few microseconds indicate launch-bound code: use a CUDA graph (torch.compile mode
reduce-overhead) or fuse. Allocations per token should be 0: see mallocs. More than one sync point or D2H copy per
token: the host reads back more than the sampled token, see syncs. A p95 far above the median: see the outliers in
steps. Decoding one sequence is memory-bound: bandwidth_pct says how close it is to that limit, headroom_ns how much
time it could still save."""
empty = """\
No steps found: no repetition holds most of the GPU time. Name an NVTX range with --step-range, or divide the whole \
scope with --tokens N; if there are no CUDA events, capture with: nsys profile -t cuda"""

[params.model_bytes]
type = "integer"
least = 1
help = "What a step must read at least (weights, KV cache, activations), such as 5.1GB"

[params.bandwidth_bytes_per_s]
type = "integer"
least = 1
help = "The memory bandwidth of the GPU, such as 4.8TB/s, if the trace does not give it"

[columns]
metric = "What was counted or measured"
per_token = "mean / tokens of a step; for times of one kernel, rates and shares, the mean itself"
wall_pct = """\
For times, the share of the mean wall time: kernels that overlap, and calls of several threads, may add up to more \
than 100%"""
median = "Median over the steps"
p5 = "5th percentile over the steps; NULL for a single step"
p95 = "95th percentile over the steps; NULL for a single step"
mean = "Mean over the steps"
stddev = "Sample standard deviation; NULL for a single step"
total = "Sum over the steps; NULL for times of one kernel, rates and shares"
min = "Smallest value of a step; NULL for rates"
p99 = "99th percentile over the steps; NULL for a single step, and for rates"
max = "Largest value of a step; NULL for rates"

[notes]
method.text = [[
    "{?is_count}no steps were found, of process {process_id}; {confidence} confidence: {reason}",
    """steps are <the NVTX ranges {range_name}><the iterations of loop {step_loop}><, {mark}>, of process {process_id};
    {confidence} confidence: {reason}""",
]]
method.query = "FROM _step_source WHERE method IS NOT NULL"

doubt.use = "step_doubt"
spread.use = "step_spread"

steady.text = [[
    """{steady_count} of {step_count} steps are <{?is_steady}steady><{?is_spread}counted><, {outlier_count} of them
    outliers>: all rows are of these, tokens/s too; left out: {warm_up_count} warm-up<, {tail_count} at the end> (see
    steps)""",
    """{steady_count} of {step_count} steps are <{?is_steady}steady><{?is_spread}counted><, {outlier_count} of them
    outliers>: all rows are of these, tokens/s too<; left out: {tail_count} at the end> (see steps)""",
]]
steady.query = """
SELECT
    m.steady_count, m.step_count, nullif(m.outlier_count, 0) AS outlier_count,
    nullif(m.warm_up_count, 0) AS warm_up_count, nullif(m.tail_count, 0) AS tail_count,
    s.longest_ns IS NULL AS is_steady, s.longest_ns IS NOT NULL AS is_spread
FROM step_method AS m CROSS JOIN _step_source AS s WHERE m.method <> 'count'"""

prefill.text = "Excluded: prefill (<{pieces} of a mean >{duration_ns}, GPU busy {gpu_busy_ns}<, {kernels:kernel}>)"
prefill.query = """
WITH pieces AS (SELECT duration_ns, gpu_busy_ns, kernels FROM steps WHERE phase = 'prefill'),
-- Where ranges are named prefill, the figures are those of phases: a piece also has what runs next to its range.
ranges AS (SELECT duration_ns, gpu_busy_ns, kernels FROM phase_steps WHERE phase = 'prefill'),
prefills AS (
    FROM ranges WHERE (SELECT count(*) FROM ranges) = (SELECT count(*) FROM pieces)
    UNION ALL
    FROM pieces WHERE (SELECT count(*) FROM ranges) <> (SELECT count(*) FROM pieces)
)
SELECT
    nullif(count(*), 1) AS pieces, avg(duration_ns) AS duration_ns, avg(gpu_busy_ns) AS gpu_busy_ns,
    round(avg(kernels))::BIGINT AS kernels
FROM prefills HAVING count(*) > 0"""

phases.text = "Phases: {phases}. per-phase has a column for each; --phase NAME selects one."
phases.query = """
SELECT list(step_phase ORDER BY step_phase) AS phases
FROM (
    SELECT DISTINCT step_phase
    FROM _phase_ranges
    WHERE phase IN ('prefill', 'decode', 'mixed') AND NOT EXISTS (FROM scope WHERE nvtx IS NOT NULL)
)
HAVING count(*) > 1"""

tokens.text = [[
    """a step would make {misfit_tokens} tokens: --tokens does not match the {step_count} steps, so figures per token
    may be wrong; see nsys-insight steps""",
    "a step makes {tokens_per_step} tokens; of the columns, only per_token is divided by them",
]]
tokens.query = """
SELECT s.misfit_tokens, m.step_count, round(m.tokens_per_step, 2) AS tokens_per_step
FROM step_method AS m, _step_source AS s WHERE m.method IS NOT NULL AND m.tokens_per_step <> 1"""

processes.use = "processes"

gpus.text = "gpu_busy_ns and gpu_idle_ns are means over the {gpus} GPUs that were used"
gpus.query = "SELECT count(DISTINCT gpu_id) AS gpus FROM step_gpus HAVING count(DISTINCT gpu_id) > 1"

graphs.use = "steady_graphs"
graphs.text = """
CUDA graphs ran as a whole: gpu_busy_ns includes them, but their kernels are not in the trace; capture with
--cuda-graph-trace=node to see them"""

profiled.use = "unprofiled"

bandwidth.text = "the trace does not give the memory bandwidth of its GPU: give it with --bandwidth"
bandwidth.query = """
FROM answer WHERE $model_bytes IS NOT NULL AND $bandwidth_bytes_per_s IS NULL AND metric = 'wall_ns'
    AND NOT EXISTS (FROM answer WHERE metric = 'memory_floor_ns')"""
*/
WITH steady_steps AS (
    FROM steps WHERE phase = 'steady'
),
tokens AS (
    SELECT tokens_per_step FROM step_method
),
-- The bandwidth of the GPU that these steps run on.
memory AS (
    SELECT coalesce($bandwidth_bytes_per_s, min(g.memory_bytes_per_s))::DOUBLE AS bytes_per_s
    FROM gpus AS g
    WHERE g.gpu_id IN (SELECT gpu_id FROM step_gpus) AND g.memory_bytes_per_s > 0
),
step_values AS (
    SELECT place, metric, kind, value
    FROM step_metrics
    UNION ALL
    SELECT m.place, m.metric, m.kind, m.value
    FROM steady_steps AS s CROSS JOIN memory AS b, LATERAL (
        VALUES
            (40, 'memory_floor_ns', 'floor', $model_bytes::DOUBLE / b.bytes_per_s * 1e9),
            (41, 'headroom_ns', 'floor', s.duration_ns - $model_bytes::DOUBLE / b.bytes_per_s * 1e9),
            (42, 'achieved_bytes_per_s', 'floor mean', $model_bytes::DOUBLE * 1e9 / nullif(s.duration_ns, 0)),
            (
                43, 'bandwidth_pct', 'floor mean',
                100 * $model_bytes::DOUBLE * 1e9 / nullif(s.duration_ns, 0) / b.bytes_per_s
            )
    ) AS m (place, metric, kind, value)
    WHERE value IS NOT NULL
),
metric_statistics AS (
    SELECT
        place, metric, kind,
        quantile_cont(value, 0.5) AS median,
        avg(value) AS mean,
        CASE WHEN count(*) > 1 THEN quantile_cont(value, 0.05) END AS p5,
        CASE WHEN count(*) > 1 THEN quantile_cont(value, 0.95) END AS p95,
        min(value) AS min,
        CASE WHEN count(*) > 1 THEN quantile_cont(value, 0.99) END AS p99,
        max(value) AS max,
        stddev_samp(value) AS stddev,
        CASE WHEN kind IN ('time', 'count') THEN sum(value)::BIGINT END AS total
    FROM step_values
    GROUP BY place, metric, kind
    UNION ALL
    SELECT
        35, 'tokens_per_s', 'rate',
        1e9 * t.tokens_per_step / nullif(quantile_cont(s.duration_ns, 0.5), 0),
        1e9 * t.tokens_per_step / nullif(avg(s.duration_ns), 0),
        NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM steady_steps AS s CROSS JOIN tokens AS t
    GROUP BY t.tokens_per_step
)
SELECT
    s.metric,
    CASE WHEN s.kind IN ('time', 'count', 'floor') THEN s.mean / t.tokens_per_step ELSE s.mean END AS per_token,
    CASE
        WHEN s.kind IN ('time', 'floor') THEN 100 * s.mean / nullif((SELECT avg(duration_ns) FROM steady_steps), 0)
    END AS wall_pct,
    s.median,
    s.p5,
    s.p95,
    s.mean,
    s.stddev,
    s.total,
    s.min,
    s.p99,
    s.max
FROM metric_statistics AS s CROSS JOIN tokens AS t
-- What no step has comes last: a table may be cut there.
ORDER BY coalesce(s.mean, 1) = 0, s.place
