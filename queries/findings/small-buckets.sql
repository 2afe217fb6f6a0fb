/*
code = "NSI512"
title = "Gradients are reduced in many small collectives"
family = "small-buckets"
explains = ["communication"]
meaning = """
A collective of a few KB takes about as long as one of a MB: its time is latency. Each also takes the host two launches
or more."""
evidence = [
    "{collectives:collective} {per}; half of them take less than {median_ns} where they wait least",
    "{launches:launch|launches} {per}",
    "the host takes {collective_host_ns} for each",
    "the GPU is idle or only communicates for {lost_ns} of {wall_ns} {per}",
]
skip_if = "They exchange activations, as in tensor parallelism, which must be complete before the next layer begins."
effort = "flag"
numerics = "rounding"
estimate = """
High: for each collective, the usual time from the launch call before it to the one after it, less the usual time
between two others: what the host does for it. At most the time in which the GPU is idle or only communicates. Low: a
third of it."""
links = ["PyTorch documentation, DistributedDataParallel: bucket_cap_mb", "NCCL documentation, Group Calls"]
report = "steps"
when = """
SELECT 1 FROM _steady_shapes
HAVING sum(calls) FILTER (family = 'comm') >= $min_collectives
    AND bool_or(regexp_matches(name, '(?i)multi_tensor|adam|sgd|lamb([^d]|$)|addcdiv|optimizer'))"""

[fix]
any = "Reduce the gradients in larger buckets, of about 25 MB: copy them into one buffer, or let them be views of it."
pytorch = """
Use larger buckets: DistributedDataParallel(bucket_cap_mb=25, gradient_as_bucket_view=True); FSDP: wrap whole layers
instead of single modules."""
jax = """
Let XLA combine them: XLA_FLAGS=--xla_gpu_all_reduce_combine_threshold_bytes=33554432, or reduce one flattened array."""
cuda = """
Reduce one buffer of all gradients, or put the calls between ncclGroupStart and ncclGroupEnd, so that they run as one
kernel."""

[params]
min_collectives = [16, "Fewest collectives in a step (16: buckets of 25 MB of a small model are fewer)"]
max_median_ns = [40000,
    "Longest median of a collective that counts as small (40 µs: the latency of NCCL is 10 to 30 µs)"]
*/
WITH collectives AS (
    SELECT
        s.step, k.end_ns - k.start_ns AS run_ns,
        row_number() OVER (PARTITION BY s.step ORDER BY k.start_ns) AS turn
    FROM (
        SELECT process_id, start_ns, end_ns FROM kernel_events
        WHERE name_id IN (
            SELECT name_id FROM kernel_names WHERE family = 'comm' AND regexp_matches(name, '(?i)reduce|generic')
        )
    ) AS k
    ASOF JOIN _steady_windows AS s ON s.process_id = k.process_id AND s.start_ns <= k.start_ns
    WHERE k.start_ns < s.end_ns
),
-- Some of its time a collective waits for other ranks: the shortest of all steps waits least.
shortest_runs AS (
    SELECT turn, min(run_ns) AS run_ns FROM collectives GROUP BY turn
),
sizes AS (
    SELECT
        (SELECT count(*)::DOUBLE FROM collectives) AS collectives,
        (SELECT median(run_ns) FROM shortest_runs) AS median_ns
),
host_launches AS (
    SELECT
        n.family = 'comm' AS is_collective,
        n.family <> 'comm' AND lag(n.family) OVER thread_calls <> 'comm' AS is_usual,
        lead(l.api_start_ns) OVER thread_calls - lag(l.api_end_ns) OVER thread_calls AS around_ns,
        l.api_start_ns - lag(l.api_end_ns) OVER thread_calls AS before_ns
    FROM launches AS l
    JOIN kernel_names AS n USING (name_id)
    WHERE l.call_group = 'launch'
    WINDOW thread_calls AS (PARTITION BY l.process_id, l.thread_id ORDER BY l.api_start_ns)
),
host_times AS (
    SELECT
        median(around_ns) FILTER (is_collective) - median(before_ns) FILTER (is_usual) AS collective_host_ns
    FROM host_launches
),
communication AS (
    SELECT coalesce(sum(time_ns), 0)::DOUBLE AS exposed_ns FROM step_budget WHERE part = 'communication'
)
SELECT
    (t.idle_ns + c.exposed_ns / t.units) AS lost_ns,
    least(greatest(h.collective_host_ns, 0) * s.collectives / t.units, lost_ns) AS recoverable_ns,
    recoverable_ns / 3 AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    s.collectives / t.units AS collectives, s.median_ns, t.launch_calls AS launches, t.wall_ns,
    h.collective_host_ns
FROM sizes AS s, host_times AS h, communication AS c, _step_totals AS t
WHERE t.has_steps AND s.collectives >= $min_collectives * t.units AND s.median_ns <= $max_median_ns
