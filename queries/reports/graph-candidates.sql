/*
title = "What a CUDA graph of the step would save"
topic = "idle"
place = 6
question = "What would a CUDA graph of the step save, at least and at most?"
description = """
Estimates the wall of a steady step (see steps) whose kernels are launched by one CUDA graph in place of one call each. What
goes is the time in which the GPU starved or waited for a launch call under way (see idle). What stays is, at least, 0.3 µs
from one kernel of the graph to the next and one launch call of the usual length; at most, 1 µs from kernel to kernel, 0.6 µs
of the graph's launch call for each, and after each wait for the GPU the CPU work that usually precedes a launch. Busy time,
blocked time, dependencies and CPU work that is no launching (in gaps of --long-gap or more, before less than half of the
operations; or more than --launch-apart for each launch) stay as they are. The saving is what goes less what stays, never below 0: saving_low_ns with
the most that may stay, saving_high_ns with the least. The figures from kernel to kernel are what an H200 shows: 0.36 µs in
a graph traced as a whole, 0.40 µs traced by node, where the launch call took 0.57 µs for each kernel."""
reading = """
yes: capture the step (torch.cuda.graph, torch.compile mode reduce-overhead, cudaStreamBeginCapture) before any kernel is
tuned. obstacles says what must go from the step first: allocations cannot be captured (use a pool, or allocate before), and
each wait for the GPU inside the step ends a graph, so that several are needed. The saving is of the profiled run: without
the profiler launches take about a quarter less time, and so does what they cost. no: the GPU hardly waits for launches, or
they are in graphs already."""
empty = "No steps found to capture: name an NVTX range with --step-range, or see steps"

[params.kernel_gap_low_ns]
type = "integer"
default = 300
least = 0
help = "The least time from one kernel of a graph to the next"

[params.kernel_gap_high_ns]
type = "integer"
default = 1000
least = 0
help = "The most time from one kernel of a graph to the next"

[params.launch_per_kernel_ns]
type = "integer"
default = 600
least = 0
help = "The most that a kernel adds to the launch call of its graph"

[params.long_gap_ns]
type = "integer"
default = 100_000
least = 0
help = "CPU work in a gap of this length is more than launching takes (100 µs: launches from Python are 5 to 50 µs apart)"

[params.launch_apart_ns]
type = "integer"
default = 50_000
least = 0
help = "The most CPU work between two launches that is launching (50 µs: launches from Python are 5 to 50 µs apart)"

[params.least_pct]
default = 5.0
least = 0
help = "A saving below this share of the wall is not worth a graph"

[columns]
verdict = "yes: saving_low_ns is --least-pct of the wall or more; maybe: only saving_high_ns is; no"
reason = "Why"
obstacles = "What of the step cannot be in one graph"
wall_ns = "Mean wall of a steady step"
graph_wall_low_ns = "The step with a graph, at best"
graph_wall_high_ns = "The step with a graph, at worst"
saving_low_ns = "Saving per token, at least"
saving_high_ns = "Saving per token, at most"
saving_low_pct = "saving_low_ns as a share of the wall of a token"
saving_high_pct = "saving_high_ns as a share of the wall of a token"
single_launches = "Launch calls of a step that put one kernel on the GPU"
graph_launches = "Launches of CUDA graphs in a step"
waiting_ns = "Idle time of a step in which the GPU starved or waited for a launch call under way"
launch_call_ns = "Mean time of a launch call"
long_gap_ns = "CPU work of waiting_ns that stays, because it is in long gaps or more than launching takes"

[notes]
profiled = """
SELECT 'the saving is of the profiled run: ' || profiler_share_text()
FROM answer WHERE verdict <> 'no'"""
[agent]
rows = 1
columns = ["verdict", "saving_low_ns", "saving_high_ns", "reason"]
*/
WITH steady AS (
    FROM steps WHERE phase = 'steady'
),
-- CPU work that is no launching stays.
waiting AS (
    FROM _cpu_work_apart($long_gap_ns, $launch_apart_ns)
),
means AS (
    SELECT
        count(*) AS steps,
        avg(s.duration_ns) AS wall_ns,
        avg(s.launch_calls - s.graph_launches) AS single_launches,
        avg(s.graph_launches) AS graph_launches,
        avg(s.mallocs + s.frees) AS allocations,
        avg(s.sync_points) AS sync_points,
        sum(s.api_launch_ns) / nullif(sum(s.launch_calls), 0) AS launch_call_ns
    FROM steady AS s
),
-- A mean over steps, and over the GPUs that the process used.
parts AS (
    SELECT
        m.*,
        w.waiting_ns / m.steps / g.gpus AS waiting_ns,
        w.apart_ns / m.steps / g.gpus AS long_gap_ns,
        ((SELECT coalesce(sum(idle_ns), 0) FROM step_idle WHERE host IN ('CPU work', 'API calls', 'managed memory')) - w.apart_ns)
            / m.steps / g.gpus / nullif(m.single_launches, 0) AS cpu_per_launch_ns
    FROM means AS m, waiting AS w, (SELECT greatest(count(DISTINCT gpu_id), 1) AS gpus FROM step_gpus) AS g
    WHERE m.steps > 0
),
stays AS (
    SELECT
        *,
        single_launches * $kernel_gap_low_ns + coalesce(launch_call_ns, 0) AS low_ns,
        single_launches * ($kernel_gap_high_ns + $launch_per_kernel_ns) + coalesce(launch_call_ns, 0)
            + (sync_points + 1) * coalesce(cpu_per_launch_ns, 0) AS high_ns
    FROM parts
),
saved AS (
    SELECT
        *,
        CASE WHEN single_launches < 2 THEN 0 ELSE greatest(waiting_ns - long_gap_ns - high_ns, 0) END AS saving_low_ns,
        CASE WHEN single_launches < 2 THEN 0 ELSE greatest(waiting_ns - long_gap_ns - low_ns, 0) END AS saving_high_ns
    FROM stays
)
SELECT
    CASE
        WHEN 100 * s.saving_low_ns >= $least_pct * s.wall_ns AND s.saving_low_ns > 0 THEN 'yes'
        WHEN 100 * s.saving_high_ns >= $least_pct * s.wall_ns AND s.saving_high_ns > 0 THEN 'maybe'
        ELSE 'no'
    END AS verdict,
    CASE
        WHEN s.single_launches < 2 AND s.graph_launches > 0 THEN 'the step is launched by CUDA graphs already'
        WHEN s.single_launches < 1 AND EXISTS (FROM _unrecorded WHERE what = 'calls') THEN 'the launch calls are not in the trace'
        WHEN s.single_launches < 2 THEN 'a step has fewer than two launches'
        ELSE 'the GPU waits for launches ' || round(100 * s.waiting_ns / s.wall_ns, 1) || ' % of the step: '
            || counted_text(round(s.single_launches), 'call') || ' of ' || round(s.launch_call_ns / 1e3, 1) || ' µs'
            || CASE WHEN s.long_gap_ns > 0.5 * s.waiting_ns THEN '; most of it is CPU work that is no launching' ELSE '' END
    END AS reason,
    nullif(concat_ws('; ',
        CASE WHEN s.allocations > 0 THEN counted_text(s.allocations, 'allocation or free', 'allocations and frees') || ' a step cannot be captured' END,
        CASE WHEN s.sync_points > 1 THEN counted_text(s.sync_points, 'wait') || ' for the GPU a step: those inside it end a graph' END
    ), '') AS obstacles,
    s.wall_ns,
    s.wall_ns - s.saving_high_ns AS graph_wall_low_ns,
    s.wall_ns - s.saving_low_ns AS graph_wall_high_ns,
    s.saving_low_ns / t.tokens_per_step AS saving_low_ns,
    s.saving_high_ns / t.tokens_per_step AS saving_high_ns,
    100 * s.saving_low_ns / s.wall_ns AS saving_low_pct,
    100 * s.saving_high_ns / s.wall_ns AS saving_high_pct,
    s.single_launches,
    s.graph_launches,
    s.waiting_ns,
    s.launch_call_ns,
    s.long_gap_ns
FROM saved AS s, step_method AS t
ORDER BY ALL
