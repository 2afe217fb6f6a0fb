/*
title = "Timing of each step"
topic = "steps"
place = 3
in_help = true
question = "Which steps are there, how long is each, and which differ from the others?"
examples = ["", "--step-method sequence --limit 0"]
main = [
    "step", "duration_ns", "phase", "gpu_busy_ns", "gpu_idle_ns", "kernels", "outlier", "range_name", "launch_calls",
    "sync_points",
]
details = ["range_name"]
description = """
Finds the repetitions of the work (decoded tokens, training iterations) in the busiest process, and counts what each
contains. They are detected from the first of these that is convincing: an NVTX range that repeats and holds the GPU
work, NVTX ranges that repeat one after the other (forward, backward, optimizer), CUDA graphs, the outermost loop of
the program (see loops). --step-method and --step-range override that. The wall time of a step is its range's own time
where the work launched in it also runs in it; else it is on the GPU's timeline, from the step's first operation to
that of the next step, because the host may be far ahead. Calls belong to a step by when they begin, GPU operations by
their launch call. gpu_busy_ns is the time in which the GPU was busy, overlaps counted once, a mean over the GPUs that
the process used; gpu_busy_ns + gpu_idle_ns is the step time. A step is an outlier if its step time differs from the
median by more than a tenth, and by more than five standard deviations (estimated from the median absolute
deviation)."""
reading = """
Steps of the steady state should be similar: the outlier column says what differs. More idle time with the same
kernels: the host was late, see gaps with --step. More busy time with the same kernels: the GPU ran slower,
or shared its time. For the cost of a typical step, see per-token; for one kernel over the steps, see pace."""
empty = """\
No steps found: no repetition holds most of the GPU time. Name an NVTX range with --step-range, or give the number \
of tokens to per-token with --tokens"""

[columns]
step = "Number of the step, from 0; NULL for a prefill"
phase = """\
steady; warm-up: unlike the others, at the start; tail: the last one, whose end is not recorded; prefill: all work \
before a run of steps, if there is about as much as in a step (phases has the NVTX range alone)"""
start_ns = "When the wall time of the step begins"
duration_ns = """\
Step time (wall time): not the time that its NVTX range was open, where its work ran at another time (see nvtx)"""
gpu_busy_ns = "Time of the step in which the GPU was busy"
gpu_idle_ns = "Time of the step in which the GPU was idle"
kernels = "Kernels launched in it; NULL where a CUDA graph ran as a whole and hides them"
launch_calls = "Calls that put kernels on the GPU, including graph launches"
sync_points = "Times that the host waited for the GPU: sync calls and blocking copies"
outlier = "What differs, where the step is an outlier"
range_name = "The NVTX range of the step, where the names of the ranges differ: Step 190 to 200"

[notes]
method.text = [[
    "{?is_count}the whole scope is one step, of process {process_id}; {confidence} confidence: {reason}",
    """steps are <the NVTX ranges {range_name}><the iterations of loop {step_loop}><, {mark}>, of process {process_id};
    {confidence} confidence: {reason}""",
]]
method.query = "FROM _step_source WHERE method IS NOT NULL"

doubt.use = "step_doubt"
spread.use = "step_spread"
drift.use = "step_drift"
interruptions.use = "step_interruptions"

left_out.text = [[
    """{steady_count:step is|steps are} <{?is_steady}steady><{?is_spread}counted>; left out: {prefill_count} prefill<
    with all work before the steps (its range alone: {range_ns}, see phases)><, {warm_up_count} warm-up><, {tail_count}
    at the end>""",
    """{steady_count:step is|steps are} <{?is_steady}steady><{?is_spread}counted>; left out: {warm_up_count} warm-up<,
    {tail_count} at the end>""",
    "{steady_count:step is|steps are} <{?is_steady}steady><{?is_spread}counted>; left out: {tail_count} at the end",
]]
left_out.query = """
SELECT
    steady_count, nullif(prefill_count, 0) AS prefill_count, nullif(warm_up_count, 0) AS warm_up_count,
    nullif(tail_count, 0) AS tail_count, longest_ns IS NULL AS is_steady, longest_ns IS NOT NULL AS is_spread,
    -- A prefill ends where its range does not, or has work of no range.
    (
        SELECT any_value(r.duration_ns) FROM phase_steps AS r, answer AS a
        WHERE r.phase = 'prefill' AND a.phase = 'prefill'
        HAVING count(*) = 1 AND any_value(r.duration_ns) <> any_value(a.duration_ns)
    ) AS range_ns
FROM step_method CROSS JOIN (SELECT longest_ns FROM _step_source)"""

outliers.text = [[
    """{outlier_count:step differs|steps differ} from the others: {longest}<{?has_more}; …>. nsys-insight gaps --step
    {outlier_id} shows where the GPU is idle in the longest one""",
    "no step is an outlier: the longest, step {longest_id}, takes {longest_ns}, the median {median_ns}",
]]
outliers.query = """
SELECT
    nullif(count(outlier), 0) AS outlier_count, count(outlier) > 3 AS has_more,
    arg_max(step, duration_ns) FILTER (outlier IS NOT NULL) AS outlier_id,
    array_to_string(
        list(format('{} ({})', step, concat_ws('; ', range_name, outlier)) ORDER BY duration_ns DESC, step)
            FILTER (outlier IS NOT NULL)[:3],
        '; '
    ) AS longest,
    CASE WHEN NOT any_value(is_spread) THEN arg_max(step, duration_ns) END AS longest_id,
    max(duration_ns) AS longest_ns, median(duration_ns) AS median_ns
FROM answer CROSS JOIN (SELECT longest_ns IS NOT NULL AS is_spread FROM _step_source)
WHERE phase = 'steady'
HAVING count(*) > 1"""
*/
WITH ranges_of_steps AS (
    SELECT n.process_id, n.thread_id, n.start_ns AS host_start_ns, any_value(n.name) AS range_name
    FROM nvtx_ranges AS n
    JOIN step_method AS m ON m.method = 'nvtx' AND m.process_id = n.process_id AND folded_name(n.name) = m.pattern
        AND n.name <> m.pattern
    GROUP BY ALL
)
SELECT
    s.step,
    s.phase,
    s.start_ns,
    s.duration_ns,
    s.gpu_busy_ns,
    s.gpu_idle_ns,
    s.kernels,
    s.launch_calls,
    s.sync_points,
    CASE WHEN s.step IS NOT NULL THEN s.reason END AS outlier,
    r.range_name
FROM steps AS s
LEFT JOIN ranges_of_steps AS r USING (process_id, thread_id, host_start_ns)
WHERE s.phase <> 'other'
ORDER BY s.start_ns, s.step
