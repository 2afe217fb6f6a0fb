/*
title = "What a CUDA graph of the step would save"
topic = "idle"
place = 6
in_help = true
question = "What would a CUDA graph of the step save, at least and at most?"
examples = ["", "--nvtx decode_step"]
description = """
Estimates the step time of a steady step (see steps) if one CUDA graph launched its kernels instead of one call each.
A graph removes the idle time that late launches cause (launch in idle). What remains is, at least, 0.3 µs from one
kernel of the graph to the next and one launch call of the usual length; at most, 1 µs from kernel to kernel, 0.6 µs
of the graph's launch call for each kernel, and after each wait for the GPU the CPU work that usually precedes a
launch. Busy time, time in waits, dependencies and CPU work other than launching (in gaps of --long-gap or more,
before less than half of the operations; or more than --launch-apart for each launch) do not change. The saving is
what the graph removes minus what remains, never below 0: saving_low_ns with the most that may remain, saving_high_ns
with the least. The times from kernel to kernel are those of an H200: 0.36 µs in a graph traced as a whole, 0.40 µs
traced by node, where the launch call took 0.57 µs for each kernel."""
reading = """
yes: capture the step (torch.cuda.graph, torch.compile mode reduce-overhead, cudaStreamBeginCapture) before any
kernel is tuned. obstacles says what must first be removed from the step: allocations cannot be captured (use a
pool, or allocate before), and each wait for the GPU inside the step ends a graph, so that several graphs are
needed. saving_low_ns and saving_high_ns are of the run under nsys, which makes launches slower: without it, the graph
saves unprofiled_low_ns to unprofiled_high_ns.
no: do not capture the step. The GPU waits little for launches, or the launches are in graphs already."""
empty = "No steps were found: name an NVTX range with --step-range, or see steps"

[params.kernel_gap_low_ns]
type = "integer"
default = 300
least = 0
help = "The shortest time from one kernel of a graph to the next"

[params.kernel_gap_high_ns]
type = "integer"
default = 1000
least = 0
help = "The longest time from one kernel of a graph to the next"

[params.launch_per_kernel_ns]
type = "integer"
default = 600
least = 0
help = "The most time that a kernel adds to the launch call of its graph"

[params.long_gap_ns]
type = "integer"
default = 100_000
least = 0
help = """\
CPU work in a gap of this length is longer than launching takes (100 µs: launches from Python are 5 to 50 µs apart)"""

[params.launch_apart_ns]
type = "integer"
default = 50_000
least = 0
help = """\
The longest CPU work between two launches that counts as launching (50 µs: launches from Python are 5 to 50 µs \
apart)"""

[params.least_pct]
default = 5.0
least = 0
help = "A saving below this share of the step time is not worth a graph"

[shares]
saving_low_pct = "wall"
saving_high_pct = "wall"

[columns]
verdict = "yes: saving_low_ns is at least --least-pct of the step time; maybe: only saving_high_ns is; no"
reason = "Why"
obstacles = "What prevents capturing the step in one graph"
wall_ns = "Mean step time of the steady state"
graph_wall_low_ns = "Step time with a graph, at best"
graph_wall_high_ns = "Step time with a graph, at worst"
saving_low_ns = "Saving per token, at least"
saving_high_ns = "Saving per token, at most"
saving_low_pct = "saving_low_ns as a share of the wall time per token"
saving_high_pct = "saving_high_ns as a share of the wall time per token"
single_launches = "Launch calls per step that put one kernel on the GPU"
graph_launches = "CUDA graph launches per step"
waiting_ns = "Idle time per step that late launches cause (launch in gpu_idle)"
launch_call_ns = "Mean time of a launch call"
long_gap_ns = """\
CPU work in waiting_ns that remains with a graph, because it is in long gaps or longer than launching takes"""
unprofiled_low_ns = "Saving per token without nsys, at least, by the view unprofiled_step; NULL if that is unknown"
unprofiled_high_ns = "Saving per token without nsys, at most; NULL if that is unknown"

[notes]
profiled.use = "unprofiled"
profiled.text = [[
    "{misfit}",
    """the saving is of the run under nsys, and smaller without it: {unknown}; give the time of a step without nsys:
    --step-time""",
    "without nsys, a graph saves about {about_ns} per {unit}: {step_ns} per {unit} (median) under nsys; {without}",
    """without nsys, a graph saves {least_ns} to {most_ns} per {unit}: {step_ns} per {unit} (median) under nsys;
    {without}""",
    "without nsys, a graph saves up to {most_ns} per {unit}: {step_ns} per {unit} (median) under nsys; {without}",
]]
profiled.query = """
SELECT
    s.*,
    CASE WHEN a.unprofiled_high_ns < 0.95 * a.saving_high_ns THEN a.unprofiled_high_ns END AS most_ns,
    CASE WHEN a.unprofiled_low_ns >= 0.5 THEN a.unprofiled_low_ns END AS least_ns,
    -- Times that are written with the same digits are no range.
    CASE WHEN time_text(a.unprofiled_low_ns) = time_text(most_ns) THEN most_ns END AS about_ns
FROM answer AS a CROSS JOIN _unprofiled_source AS s
WHERE a.verdict <> 'no'"""
*/
WITH steady_steps AS (
    FROM steps WHERE phase = 'steady'
),
-- CPU work other than launching remains with a graph.
waiting_time AS (
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
    FROM steady_steps AS s
),
-- Means over the steps, and over the GPUs that the process used.
means_with_waiting AS (
    SELECT
        m.*,
        w.waiting_ns / m.steps / g.gpus AS waiting_ns,
        w.apart_ns / m.steps / g.gpus AS long_gap_ns,
        (
            (
                SELECT coalesce(sum(idle_ns), 0)
                FROM step_idle
                WHERE host IN ('CPU work', 'MPI calls', 'API calls', 'managed memory')
            )
                - w.apart_ns
        )
            / m.steps / g.gpus / nullif(m.single_launches, 0) AS cpu_per_launch_ns
    FROM means AS m
    CROSS JOIN waiting_time AS w
    CROSS JOIN (SELECT greatest(count(DISTINCT gpu_id), 1) AS gpus FROM step_gpus) AS g
    WHERE m.steps > 0
),
remaining_times AS (
    SELECT
        *,
        single_launches * $kernel_gap_low_ns + coalesce(launch_call_ns, 0) AS low_ns,
        single_launches * ($kernel_gap_high_ns + $launch_per_kernel_ns) + coalesce(launch_call_ns, 0)
            + (sync_points + 1) * coalesce(cpu_per_launch_ns, 0) AS high_ns
    FROM means_with_waiting
),
savings AS (
    SELECT
        *,
        CASE WHEN single_launches < 2 THEN 0 ELSE greatest(waiting_ns - long_gap_ns - high_ns, 0) END AS saving_low_ns,
        CASE WHEN single_launches < 2 THEN 0 ELSE greatest(waiting_ns - long_gap_ns - low_ns, 0) END AS saving_high_ns
    FROM remaining_times
)
SELECT
    CASE
        WHEN 100 * s.saving_low_ns >= $least_pct * s.wall_ns AND s.saving_low_ns > 0 THEN 'yes'
        WHEN 100 * s.saving_high_ns >= $least_pct * s.wall_ns AND s.saving_high_ns > 0 THEN 'maybe'
        ELSE 'no'
    END AS verdict,
    CASE
        WHEN s.single_launches < 2 AND s.graph_launches > 0 THEN 'the step is launched by CUDA graphs already'
        WHEN s.single_launches < 1 AND EXISTS (FROM _unrecorded WHERE what = 'calls')
            THEN 'the launch calls are not in the trace'
        WHEN s.single_launches < 2 THEN 'a step has fewer than two launches'
        ELSE 'late launches leave the GPU idle ' || round(100 * s.waiting_ns / s.wall_ns, 1) || '% of the step; '
            || counted_text(round(s.single_launches), 'launch call') || ' of ' || time_text(s.launch_call_ns)
            || CASE
                WHEN s.long_gap_ns > 0.5 * s.waiting_ns THEN '; most of it is CPU work other than launching' ELSE ''
            END
    END AS reason,
    nullif(concat_ws('; ',
        CASE
            WHEN s.allocations > 0
                THEN counted_text(s.allocations, 'allocation or free', 'allocations and frees')
                    || ' per step cannot be captured'
        END,
        CASE
            WHEN s.sync_points > 1
                THEN counted_text(s.sync_points, 'synchronization')
                    || ' per step, which split the graph'
        END
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
    s.long_gap_ns,
    _without_nsys(s.saving_low_ns / t.tokens_per_step, s.saving_high_ns / t.tokens_per_step, u.late_ns, u.late_low_ns)
        AS unprofiled_low_ns,
    _without_nsys(s.saving_high_ns / t.tokens_per_step, s.saving_high_ns / t.tokens_per_step, u.late_ns, u.late_high_ns)
        AS unprofiled_high_ns
FROM savings AS s
CROSS JOIN step_method AS t
LEFT JOIN unprofiled_step AS u ON u.source IS NOT NULL
ORDER BY ALL
