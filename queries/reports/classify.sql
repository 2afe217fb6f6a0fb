/*
title = "What bounds the steady state"
topic = "steps"
place = 2
question = "What bounds a step: launches, syncs, copies, allocations, communication, or the GPU?"
main = ["part", "time_ns", "wall_pct", "recoverable_ns", "verdict", "evidence"]
details = ["see"]
description = """
Splits the wall of a steady step (see steps; of the whole scope where none are found) by what it would take to win the time
back. gpu: the GPU works. communication and copy: it has nothing but kernels that communicate, or copies to or from it, or
is idle for a blocking copy to it. The rest is idle time by its cause (see idle): launch is what starved, or waited for a
launch call under way (launch-bound; host-bound where most of it is CPU work that is no launching, see graph-candidates);
sync what passed in waits for the GPU and reads of its data, and what then starved, but at most as long as the wait had held
the host up (without it, the host would have been that much ahead). The verdict: GPU-bound where
gpu holds --busy-pct of the wall, or half of it, dependencies included, while the causes named hold less than the rest;
else the causes from --least-pct on: the largest alone if it holds --main-pct of them, or mixed, in the order in which to
remove them: what makes the host wait comes first, for while it does nothing can be queued or captured in a graph.
TKLQT is the time from the begin of each launch call to the start of its kernel (Vellaisamy et al., arXiv 2504.11750): while
the CPU is behind it is the cost of launching; once it is ahead, kernels queue. CPU-bound here: the queue, launch latency
included, holds less than half of it; GPU-bound: --queue-pct or more. Both limits are ours."""
reading = """
launch-bound: see graph-candidates; fuse kernels. host-bound: see gaps and host. sync-bound: see syncs and host.
allocation-bound: see mallocs. copy-bound: pin memory, copy asynchronously on another stream, see copies. communication-bound: overlap it, see streams.
GPU-bound: the host keeps up, so look at kernels: top and classify --kernels. recoverable_ns is the most that removing a
cause can win, for another may take its place: change one thing and look again. All is of the profiled run, in which
launches take about a third longer than alone. classify-steps gives the verdict of each step."""
empty = "Nothing that ran on a GPU is recorded in this scope; if the program did use one, capture with: nsys profile -t cuda"

[params.least_pct]
default = 10.0
least = 0
help = "A cause bounds the step from this share of the wall on (10: what nsys itself may cost, so less is not worth a verdict)"

[params.busy_pct]
default = 80.0
least = 0
help = "GPU-bound from this share of the wall on, in which the GPU works (80: the usual limit of near the ceiling)"

[params.main_pct]
default = 66.0
least = 0
help = "One cause alone is the verdict if it holds this share of all that are named"

[params.kernel_gap_ns]
type = "integer"
default = 300
least = 0
help = "What stays of each launch in a CUDA graph: the least time from kernel to kernel (as in graph-candidates)"

[params.queue_pct]
default = 80.0
least = 0
help = "GPU-bound by TKLQT from this share of it on that is spent in queues"

[params.long_gap_ns]
type = "integer"
default = 100_000
least = 0
help = "CPU work in a gap of this length is more than launching takes (as in graph-candidates)"

[params.launch_apart_ns]
type = "integer"
default = 50_000
least = 0
help = "The most CPU work between two launches that is launching (as in graph-candidates)"

[params.edge_pct]
default = 50.0
least = 0
help = "Start-up and end, if so much of the wall is before the first operation or after the last one (50: most of it)"

[columns]
part = "wall, or a part of it; the parts add up to it"
verdict = "Of the wall: the verdict; of a part: what it makes the step, if it is named in the verdict"
time_ns = "Time per token, a mean over the steps and GPUs; of the whole scope where no steps were found"
wall_pct = "Its share of the wall"
recoverable_ns = "What can be won back of it, at most; NULL where that takes faster kernels, or nobody can say"
evidence = "What the part is made of, as shares of the wall; of the wall: TKLQT"
see = "The report that says more"

[notes]
tokens = """
SELECT tokens_misfit FROM _step_sentences WHERE tokens_misfit IS NOT NULL"""
method = """
SELECT CASE WHEN (SELECT count(*) FROM steps WHERE phase = 'steady') = 0
    THEN 'no steady steps were found: this is the whole scope, with its start-up; name an NVTX range with --step-range, or see steps'
    ELSE 'per token of ' || m.steady_count || ' steady steps, detected from ' || s.told_by || s.of_process
    END
FROM step_method AS m, _step_sentences AS s WHERE EXISTS (FROM answer)"""
tracing = """
SELECT 'graphs were traced by their nodes, which makes launching them slower: of that, ' || round(wall_pct, 1) || ' % of the wall is put down to the profiler'
-- Of what the profiler takes, only that is a part with a name of its own, as evidence has them.
FROM answer WHERE part = 'profiler' AND evidence IS NOT NULL"""
whole = """
SELECT 'CUDA graphs ran as a whole: their time is gpu, with what is idle or copied inside them; capture with --cuda-graph-trace=node to see it'
FROM graph_launches HAVING count(*) > 0"""
processes = """
SELECT sentence FROM _other_processes WHERE EXISTS (FROM answer)"""
unknown = """
SELECT 'the launch calls of what ended ' || round(wall_pct, 1) || ' % of the wall are not in the trace: what the GPU waited for then is not known'
FROM answer WHERE part = 'unknown' AND wall_pct >= 0.05 AND NOT EXISTS (FROM _unrecorded WHERE what = 'calls')"""

[ranks]
by = ["part", "see"]
spread = "time_ns"
mean = ["time_ns", "wall_pct", "recoverable_ns"]
*/
WITH budget AS MATERIALIZED (
    FROM step_budget
),
-- The parts of a step add up to its wall on each GPU, so their sum is the wall of all.
walls AS (
    SELECT
        sum(time_ns)::DOUBLE AS all_ns,
        count(DISTINCT (step, gpu_id)) AS walls,
        any_value(CASE WHEN step IS NULL THEN 1 ELSE (SELECT tokens_per_step FROM step_method) END) AS tokens,
        any_value(CASE WHEN step IS NULL THEN 1 ELSE (SELECT count(*) FROM steps WHERE phase = 'steady') END) AS steps
    FROM budget
),
launching AS (
    SELECT
        sum(launch_calls) AS launch_calls, sum(launch_calls - graph_launches) AS single_launches,
        sum(launch_queue_ns) AS launch_queue_ns, 100.0 * sum(queue_ns) / nullif(sum(launch_queue_ns), 0) AS queue_pct
    FROM step_launches
),
hosts AS (
    SELECT
        part,
        CASE WHEN host IS NOT NULL THEN host WHEN part = 'copy' THEN 'copies alone' WHEN part = 'communication' THEN 'communication alone' END AS host,
        sum(time_ns)::DOUBLE AS time_ns
    FROM budget
    GROUP BY ALL
),
parts AS (
    SELECT
        h.part, sum(h.time_ns) AS time_ns, 100 * sum(h.time_ns) / any_value(w.all_ns) AS wall_pct,
        string_agg(h.host || ' ' || round(100 * h.time_ns / w.all_ns, 1) || ' %', ', ' ORDER BY h.time_ns DESC, h.host)
            FILTER (h.host <> h.part AND 100 * h.time_ns / w.all_ns >= 0.05) AS evidence
    FROM hosts AS h, walls AS w
    GROUP BY h.part
),
-- The host is late for launching, or for CPU work of which that is the smaller part.
late AS (
    SELECT CASE WHEN is_apart THEN 'host-bound' ELSE 'launch-bound' END AS bound, CASE WHEN is_apart THEN 'gaps' ELSE 'graph-candidates' END AS see
    FROM (SELECT apart_ns > 0.5 * waiting_ns AS is_apart FROM _cpu_work_apart($long_gap_ns, $launch_apart_ns))
),
-- What is before the first operation or after the last one is no step's.
judged AS (
    SELECT
        CASE WHEN coalesce((SELECT wall_pct FROM parts WHERE part = 'edge'), 0) >= $edge_pct THEN ['start-up and end'] ELSE _verdict_of(
            p['gpu'], p['launch'], p['sync'], p['copy'], p['allocation'], p['communication'], p['dependency'],
            (SELECT bound FROM late), $least_pct, $busy_pct, $main_pct
        ) END AS words
    FROM (
        SELECT map_from_entries(list((n.part, coalesce(100 * p.time_ns / nullif(w.all_ns - coalesce((SELECT time_ns FROM parts WHERE part = 'edge'), 0), 0), 0)))) AS p
        FROM (SELECT unnest(['gpu', 'launch', 'sync', 'copy', 'allocation', 'communication', 'dependency']) AS part) AS n
        CROSS JOIN walls AS w
        LEFT JOIN parts AS p USING (part)
    )
),
known AS (
    SELECT
        *,
        CASE
            WHEN part = 'launch' THEN greatest(time_ns - $kernel_gap_ns * coalesce((SELECT single_launches FROM launching), 0), 0)
            WHEN part IN ('sync', 'copy', 'allocation', 'communication') THEN time_ns
        END AS recoverable_ns
    FROM parts
),
rows_ AS (
    SELECT
        'wall' AS part, _verdict_text(j.words) AS verdict, w.all_ns AS time_ns, 100.0 AS wall_pct,
        (SELECT sum(recoverable_ns) FROM known) AS recoverable_ns,
        'TKLQT ' || CASE WHEN l.launch_queue_ns / w.steps / w.tokens < 1e6 THEN round(l.launch_queue_ns / w.steps / w.tokens / 1e3, 1) || ' µs'
            ELSE round(l.launch_queue_ns / w.steps / w.tokens / 1e6, 2) || ' ms' END
            || ', ' || round(l.launch_queue_ns / l.launch_calls / 1e3, 1) || ' µs a launch, ' || round(l.queue_pct)::BIGINT || ' % of it in queues: '
            || CASE WHEN l.queue_pct < 50 THEN 'CPU-bound' WHEN l.queue_pct < $queue_pct THEN 'between CPU- and GPU-bound' ELSE 'GPU-bound' END AS evidence,
        NULL AS see
    FROM walls AS w, judged AS j, launching AS l
    WHERE w.all_ns > 0
    UNION ALL
    SELECT
        k.part,
        CASE WHEN list_contains(j.words, b.bound) THEN b.bound END,
        k.time_ns, k.wall_pct, k.recoverable_ns, k.evidence, b.see
    FROM known AS k
    CROSS JOIN judged AS j
    LEFT JOIN (VALUES
        ('gpu', 'GPU-bound', 'top'), ('launch', (SELECT bound FROM late), (SELECT see FROM late)), ('sync', 'sync-bound', 'syncs'),
        ('copy', 'copy-bound', 'copies'), ('allocation', 'allocation-bound', 'mallocs'),
        ('communication', 'communication-bound', 'streams'), ('dependency', NULL, 'streams'), ('unknown', NULL, 'info')
    ) AS b(part, bound, see) USING (part)
)
SELECT
    r.part, r.verdict, r.time_ns / w.walls / w.tokens AS time_ns, r.wall_pct, r.recoverable_ns / w.walls / w.tokens AS recoverable_ns,
    r.evidence, r.see
FROM rows_ AS r, walls AS w
ORDER BY r.part <> 'wall', r.verdict IS NULL, r.time_ns DESC, r.part
