/*
title = "What bounds the steady state"
topic = "steps"
place = 2
question = "What bounds a step: launches, syncs, copies, allocations, communication, or the GPU?"
examples = ["", "--steady --device 0"]
main = ["part", "time_ns", "wall_pct", "recoverable_ns", "verdict", "evidence"]
details = ["see", "unprofiled_low_ns", "unprofiled_high_ns", "unprofiled_verdict"]
description = """
Splits the wall time of a steady step (see steps; of the whole scope where no steps were found) by what would save it.
gpu: the GPU is busy. communication: it runs only communication kernels (exposed communication). copy: it runs only
copies to or from it, or is idle for a copy. The rest is idle time by cause (see idle). launch: the
host launched late (launch-bound; host-bound where most of it is CPU work other than launching, see graph-candidates).
sync: idle time during waits for the GPU and reads of its data, and the time of late launches after them, up to the
time that the wait had blocked the host (without it, the host would have been that far ahead). Verdict: GPU-bound
where gpu has --busy-pct of the wall time. Where gpu and dependency have half of it and the named causes less than the
rest: the one that has --main-pct of the two, else mixed. Otherwise the causes of at least --least-pct, start-up and end
among them: mixed with gpu where it has half of the wall time; else the largest alone if it has --main-pct of them; else
mixed, the largest share first. TKLQT is the time from the start of each launch call to the start of its kernel
(Vellaisamy et al., arXiv 2504.11750): while the CPU is behind, it is the cost of launching; once the CPU is ahead,
kernels queue. CPU-bound here: less than half of it is spent in the queue, launch latency included; GPU-bound:
--queue-pct or more. Both limits are this tool's own."""
reading = """
launch-bound: see graph-candidates; fuse kernels. host-bound: see gaps and host. sync-bound: see syncs and host.
allocation-bound: see mallocs. copy-bound: pin memory, copy asynchronously on another stream, see copies.
communication-bound: overlap it, see streams. GPU-bound: the host keeps up, so look at the kernels: top and
classify-kernels. recoverable_ns is an upper bound, because another cause may take the place of the one removed:
change one thing and profile again. All figures are of the run under nsys, which makes launches slower, except
unprofiled_low_ns, unprofiled_high_ns and unprofiled_verdict: those are of the step without nsys, as --step-time gives
it or as the calls of the trace show it (see the view unprofiled_step). classify-steps gives the verdict of each
step."""
empty = "Nothing that ran on a GPU is recorded in this scope"
advice = "if the program did use one, capture with: nsys profile -t cuda"

[params.least_pct]
default = 10.0
least = 0
help = """\
A cause bounds the step from this share of the wall time (10: nsys itself may cost as much, so a smaller share \
supports no verdict)"""

[params.busy_pct]
default = 80.0
least = 0
help = """\
GPU-bound if the GPU is busy for at least this share of the wall time (80: the usual limit for near the ceiling)"""

[params.main_pct]
default = 66.0
least = 0
help = "One cause alone is the verdict if it has this share of all causes named"

[params.kernel_gap_ns]
type = "integer"
default = 300
least = 0
help = "What remains of each launch in a CUDA graph: the shortest time from kernel to kernel (as in graph-candidates)"

[params.queue_pct]
default = 80.0
least = 0
help = "GPU-bound by TKLQT if at least this share of it is spent in queues"

[params.long_gap_ns]
type = "integer"
default = 100_000
least = 0
help = "CPU work in a gap of this length is longer than launching takes (as in graph-candidates)"

[params.launch_apart_ns]
type = "integer"
default = 50_000
least = 0
help = "The longest CPU work between two launches that counts as launching (as in graph-candidates)"

[columns]
part = "wall, or one of the parts that add up to it"
verdict = "For wall, the verdict; for a part, its bound if the verdict names it"
time_ns = """\
Time per step (or token), averaged over the steps and GPUs; in total for the whole scope where no steps were found"""
wall_pct = "Share of the wall time"
recoverable_ns = "The most of it that can be saved; NULL where that takes faster kernels, or cannot be determined"
evidence = "What the part consists of, as shares of the wall time; for wall, TKLQT"
see = "The report with the details"
unprofiled_low_ns = "time_ns without nsys, at least; NULL if that is unknown. Of wall: of a typical step"
unprofiled_high_ns = "time_ns without nsys, at most; NULL if that is unknown. Of wall: of a typical step"
unprofiled_verdict = """\
For wall, the verdict without nsys; NULL if that is unknown or the estimate allows several"""

[notes]
tokens.use = "step_tokens"

method.text = [[
    """{?lacks_steps}no steady steps were found; results cover the whole scope, including startup. Name an NVTX range
    with --step-range, or see steps""",
    """per {unit}: the mean of {steady_count:step}, from <the NVTX ranges {range_name}><the iterations of loop
    {step_loop}><{?is_count}--tokens>, of process {process_id}; {confidence} confidence""",
]]
method.query = """
SELECT NOT EXISTS (FROM steps WHERE phase = 'steady') AS lacks_steps, m.steady_count, s.*
FROM step_method AS m, _step_source AS s WHERE EXISTS (FROM answer)"""

doubt.use = "step_doubt"
spread.use = "step_spread"
profiled.use = "unprofiled"

profiler_verdict.text = "only nsys makes the step {verdict}: without it, it is {unprofiled_verdict}"
profiler_verdict.query = """
SELECT verdict, unprofiled_verdict FROM answer WHERE part = 'wall' AND NOT contains(unprofiled_verdict, verdict)"""

tracing.text = """
graphs were traced by node, which makes launching them slower: {wall_pct} of the wall time is attributed to the profiler
for that"""
tracing.query = """
-- Of the profiler's costs, only this one has a name of its own, and so evidence.
SELECT wall_pct FROM answer WHERE part = 'profiler' AND evidence IS NOT NULL"""

whole.use = "whole_graphs"
whole.text = """
CUDA graphs ran as a whole: all their time counts as gpu, including idle time and copies inside them; capture with
--cuda-graph-trace=node to see those"""

video.use = "video"
processes.use = "processes"
waiting.use = "waiting_kernels"
node_tracing.use = "node_tracing"

unknown.text = """
for {wall_pct} of the wall time, the launch call that ended the gap is not in the trace: what the GPU waited for is
unknown"""
unknown.query = """
SELECT wall_pct FROM answer
WHERE part = 'unknown' AND wall_pct >= 0.05 AND NOT EXISTS (FROM _unrecorded WHERE what = 'calls')"""

[ranks]
by = ["part", "see"]
spread = "time_ns"
mean = ["time_ns", "wall_pct", "recoverable_ns", "unprofiled_low_ns", "unprofiled_high_ns"]
*/
-- What a late host makes the verdict: host-bound if most of the waiting is for CPU work other than launching.
WITH parts AS MATERIALIZED (
    FROM _wall_parts
),
walls AS MATERIALIZED (
    FROM _step_walls
),
late_host AS (
    SELECT
        CASE WHEN is_apart THEN 'host-bound' ELSE 'launch-bound' END AS bound,
        CASE WHEN is_apart THEN 'gaps' ELSE 'graph-candidates' END AS see
    FROM (SELECT apart_ns > 0.5 * waiting_ns AS is_apart FROM _cpu_work_apart($long_gap_ns, $launch_apart_ns))
),
-- The shares of the parts: under nsys (number 0), and without nsys, with the least (1) and with the most (2) late
-- launches that may be left.
shares AS (
    SELECT 0 AS number, map_from_entries(list((part, wall_pct))) AS p FROM parts
    UNION ALL
    SELECT
        u.number,
        map_from_entries(list((p.part, 100 * CASE p.part WHEN 'launch' THEN u.late_left_ns ELSE p.part_ns END / (
            u.late_left_ns + u.other_ns
        )))) AS p
    FROM (SELECT part, time_ns / w.walls / w.tokens AS part_ns FROM parts, walls AS w) AS p
    CROSS JOIN (
        SELECT
            unnest([late_low_ns, late_high_ns]) AS late_left_ns, unnest([1, 2]) AS number,
            (
                SELECT sum(time_ns) / any_value(w.walls) / any_value(w.tokens)
                FROM parts, walls AS w WHERE part <> 'launch'
            ) AS other_ns
        FROM unprofiled_step
        WHERE source IS NOT NULL
    ) AS u
    GROUP BY u.late_left_ns, u.number
),
words AS MATERIALIZED (
    SELECT number, _verdict_of(
        coalesce(p['gpu'], 0), coalesce(p['launch'], 0), coalesce(p['sync'], 0), coalesce(p['copy'], 0),
        coalesce(p['allocation'], 0), coalesce(p['communication'], 0), coalesce(p['dependency'], 0),
        coalesce(p['start-up and end'], 0), (SELECT bound FROM late_host), $least_pct, $busy_pct, $main_pct
    ) AS words
    FROM shares
),
verdict_words AS (
    SELECT words FROM words WHERE number = 0
),
-- The same causes in another order are the same verdict.
unprofiled_verdicts AS (
    SELECT CASE
        -- Operations that start late under nsys may start in time without it.
        WHEN count(DISTINCT list_sort(u.words)) > 1 OR bool_or(list_contains(u.words, 'dependency-bound')) THEN NULL
        WHEN list_sort(any_value(u.words)) = list_sort(any_value(j.words)) THEN _verdict_text(any_value(j.words))
        ELSE common_value(_verdict_text(u.words))
    END AS verdict
    FROM words AS u, verdict_words AS j
    WHERE u.number > 0
),
recoverable_parts AS (
    SELECT
        *,
        CASE
            WHEN part = 'launch'
                THEN greatest(time_ns - $kernel_gap_ns * coalesce((SELECT single_launches FROM _launch_totals), 0), 0)
            WHEN part IN ('sync', 'copy', 'allocation', 'communication') THEN time_ns
        END AS recoverable_ns
    FROM parts
),
report_rows AS (
    SELECT
        'wall' AS part, _verdict_text(j.words) AS verdict, w.all_ns AS time_ns, 100.0 AS wall_pct,
        (SELECT sum(recoverable_ns) FROM recoverable_parts) AS recoverable_ns,
        'launch + queue time ' || time_text(l.launch_queue_ns / w.steps / w.tokens) || ' ('
            || time_text(l.launch_queue_ns / l.launch_calls) || ' per launch, ' || round(l.queue_pct)::BIGINT
            || '% queued): '
            || CASE
                WHEN l.queue_pct < 50 THEN 'CPU-bound'
                WHEN l.queue_pct < $queue_pct THEN 'between CPU- and GPU-bound'
                ELSE 'GPU-bound'
            END AS evidence,
        NULL AS see
    FROM walls AS w, verdict_words AS j, _launch_totals AS l
    WHERE w.all_ns > 0
    UNION ALL
    SELECT
        k.part,
        CASE WHEN list_contains(j.words, b.bound) THEN b.bound END,
        k.time_ns, k.wall_pct, k.recoverable_ns, k.evidence, b.see
    FROM recoverable_parts AS k
    CROSS JOIN verdict_words AS j
    LEFT JOIN (VALUES
        ('gpu', 'GPU-bound', 'top'), ('launch', (SELECT bound FROM late_host), (SELECT see FROM late_host)),
        ('sync', 'sync-bound', 'syncs'),
        ('copy', 'copy-bound', 'copies'), ('allocation', 'allocation-bound', 'mallocs'),
        ('communication', 'communication-bound', 'streams'), ('dependency', 'dependency-bound', 'streams'),
        ('unknown', NULL, 'info'),
        ('start-up and end', 'start-up and end', 'idle')
    ) AS b(part, bound, see) USING (part)
)
SELECT
    r.part, r.verdict, r.time_ns / w.walls / w.tokens AS time_ns, r.wall_pct,
    r.recoverable_ns / w.walls / w.tokens AS recoverable_ns,
    r.evidence, r.see,
    CASE r.part WHEN 'wall' THEN u.low_ns WHEN 'launch' THEN u.late_low_ns ELSE r.time_ns / w.walls / w.tokens END
        * if(u.source IS NULL, NULL, 1) AS unprofiled_low_ns,
    CASE r.part WHEN 'wall' THEN u.high_ns WHEN 'launch' THEN u.late_high_ns ELSE r.time_ns / w.walls / w.tokens END
        * if(u.source IS NULL, NULL, 1) AS unprofiled_high_ns,
    CASE r.part WHEN 'wall' THEN (SELECT verdict FROM unprofiled_verdicts) END AS unprofiled_verdict
FROM report_rows AS r
CROSS JOIN walls AS w
LEFT JOIN unprofiled_step AS u ON true
ORDER BY r.part <> 'wall', r.verdict IS NULL, r.time_ns DESC, r.part
