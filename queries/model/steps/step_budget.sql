/*
description = """Where the wall time of each steady step goes, on each GPU, by what would save it; of the whole scope
    where no steps were found. The parts add up to the wall time. Idle time is that of `gpu_idle`; a wait gets, in
    addition to its own time, the time of late launches after it, up to the time that the wait blocked the host."""
stored = true
[columns]
step = "Number of the step; NULL for the whole scope"
part = """gpu: busy with kernels, memsets, whole graphs or copies in its own memory; communication: busy only with
    communication kernels; copy: busy only with copies, or idle for a blocking copy to the GPU; launch: idle, the host
    launched late; sync: idle, the host had waited for the GPU; allocation, dependency, profiler, start-up and end,
    unknown: idle, as in `gpu_idle`"""
host = "What the host did, as in `gpu_idle`; for sync, D2H copy where it waited for data, else wait; NULL for busy time"
time_ns = "How long"
*/
-- Idle time is that of `gpu_idle` and `step_idle`. The part that is in `idle_charges` is attributed to the wait or to
-- the profiler. The busy time that only copies or only communication account for is the union of all operations minus
-- the union of the others. It is the sum of each operation's part after the latest end so far: of all operations, minus
-- the same of the others.
WITH steady_steps AS (
    SELECT step, start_ns, end_ns FROM steps WHERE phase = 'steady'
),
-- The steady steps. Without steady steps, the wall time.
spans AS (
    FROM steady_steps
    UNION ALL
    SELECT NULL, start_ns, end_ns FROM wall WHERE NOT EXISTS (FROM steady_steps)
),
span_gpus AS (
    SELECT step, gpu_id, busy_ns FROM step_gpus WHERE phase = 'steady'
    UNION ALL
    SELECT NULL, gpu_id, busy_ns FROM used_gpus WHERE NOT EXISTS (FROM steady_steps)
),
-- The idle time of each GPU, and the part that is attributed to waits and to the profiler.
idle_times AS (
    SELECT step, gpu_id, cause, host, idle_ns FROM step_idle
    UNION ALL
    SELECT NULL, gpu_id, cause, host, idle_ns FROM gpu_idle WHERE NOT EXISTS (FROM steady_steps)
),
charges AS MATERIALIZED (
    SELECT c.*
    FROM _charged_parts AS c
    SEMI JOIN span_gpus AS g ON g.step IS NOT DISTINCT FROM c.step AND g.gpu_id = c.gpu_id
),
-- Idle time by part: first the time that is not charged, then the charges.
idle_parts AS (
    SELECT
        step, gpu_id,
        cause AS part,
        CASE host WHEN 'sync calls' THEN 'wait' ELSE host END AS host,
        idle_ns
    FROM (
        SELECT step, gpu_id, cause, host, sum(idle_ns) AS idle_ns
        FROM (FROM idle_times UNION ALL SELECT step, gpu_id, cause, host, -idle_ns FROM charges)
        GROUP BY ALL
    )
    UNION ALL
    SELECT step, gpu_id, part, part_host, idle_ns FROM charges
),
-- Only what runs at the same time as a copy or as communication matters: it begins or ends within the same time slice,
-- or lasts longer. A slice is 65 µs, or longer if copies last so long that there would be more slices than rows.
non_compute_work AS MATERIALIZED (
    FROM _other_work
),
slicing AS MATERIALIZED (
    SELECT greatest(65536, sum(end_ns - start_ns) // (1000000 + 16 * count(*)))::BIGINT AS slice_ns
    FROM non_compute_work
),
slices AS MATERIALIZED (
    SELECT DISTINCT unnest(range(start_ns // slice_ns, end_ns // slice_ns + 1)) AS slice
    FROM non_compute_work CROSS JOIN slicing
),
concurrent_work AS MATERIALIZED (
    FROM non_compute_work
    UNION ALL
    FROM _levelled_work
    WHERE level = 0
        AND (
            start_ns // (SELECT slice_ns FROM slicing) IN (FROM slices)
            OR end_ns // (SELECT slice_ns FROM slicing) IN (FROM slices)
            OR end_ns - start_ns >= (SELECT slice_ns FROM slicing)
        )
),
-- Operations with the latest end so far: of operations that compute (gpu_ns), of kernels, and of all.
running_ends AS (
    SELECT
        *,
        coalesce(max(end_ns) FILTER (level = 0) OVER along, start_ns) AS gpu_ns,
        coalesce(max(end_ns) FILTER (level <= 1) OVER along, start_ns) AS kernels_ns,
        coalesce(max(end_ns) OVER along, start_ns) AS all_ns
    FROM concurrent_work
    WINDOW along AS (PARTITION BY gpu_id ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
pieces AS (
    SELECT 'communication' AS kind, gpu_id, greatest(start_ns, kernels_ns) AS start_ns, end_ns
    FROM running_ends WHERE level = 1
    UNION ALL
    SELECT 'not communication', gpu_id, greatest(start_ns, gpu_ns), least(end_ns, kernels_ns)
    FROM running_ends WHERE level = 0
    UNION ALL
    SELECT 'copy', gpu_id, greatest(start_ns, all_ns), end_ns FROM running_ends WHERE level = 2
    UNION ALL
    SELECT 'not copy', gpu_id, greatest(start_ns, kernels_ns), least(end_ns, all_ns) FROM running_ends WHERE level <= 1
),
nonempty_pieces AS (
    FROM pieces WHERE end_ns > start_ns
),
-- Busy time with only communication, and with only copies.
exclusive_times AS (
    SELECT
        o.step, p.gpu_id,
        coalesce(sum(p.end_ns - p.start_ns) FILTER (p.kind = 'communication'), 0)
            - coalesce(sum(p.end_ns - p.start_ns) FILTER (p.kind = 'not communication'), 0) AS communication_ns,
        coalesce(sum(p.end_ns - p.start_ns) FILTER (p.kind = 'copy'), 0)
            - coalesce(sum(p.end_ns - p.start_ns) FILTER (p.kind = 'not copy'), 0) AS copy_ns
    FROM cut_to('nonempty_pieces', 'spans') AS p
    JOIN spans AS o ON o.start_ns = p.window_ns
    GROUP BY ALL
),
budget AS (
    SELECT
        g.step, g.gpu_id, unnest(['gpu', 'communication', 'copy']) AS part, NULL AS host,
        unnest([
            g.busy_ns - coalesce(a.communication_ns, 0) - coalesce(a.copy_ns, 0),
            coalesce(a.communication_ns, 0), coalesce(a.copy_ns, 0)
        ]) AS time_ns
    FROM span_gpus AS g
    LEFT JOIN exclusive_times AS a ON a.step IS NOT DISTINCT FROM g.step AND a.gpu_id = g.gpu_id
    UNION ALL
    FROM idle_parts
)
SELECT step, gpu_id, part, host, sum(time_ns)::BIGINT AS time_ns
FROM budget
WHERE time_ns > 0
GROUP BY ALL;
