/*
description = """How long each stream was busy, and how much of that at the same time as other streams of its GPU: one
    row per stream that ran operations."""
stored = true
[columns]
gpu_id = "The GPU, as in `gpus`"
device_id = "CUDA device number"
stream_id = "CUDA stream id"
kernels = "Kernels that ran on it"
copies = "Copies and memsets"
graphs = "CUDA graphs that ran as a whole, traced without their kernels"
busy_ns = "Union of their times"
within_ns = "The part of busy_ns within the wall time"
gpu_busy_ns = "Time in which the GPU was busy with any stream"
overlap_ns = "Part of busy_ns in which another stream of the GPU was busy too"
span_ns = "From its first operation to the end of its last"
*/
-- How long each stream of a GPU was busy, and how much of that time another stream was busy too.
WITH ops AS (
    SELECT
        kind, start_ns, greatest(start_ns, end_ns) AS end_ns, process_id, device_id, stream_id,
        gpu_of(process_id, device_id) AS gpu_id
    FROM gpu_ops
),
scope_flags AS (
    SELECT coalesce(nvtx, from_ns::VARCHAR, to_ns::VARCHAR) IS NOT NULL AS is_cut FROM scope
),
-- If a stream ran all operations of its GPU, its busy time is that of the GPU, which is known.
single_streams AS (
    SELECT
        gpu_id, count(*) AS ops,
        sum(greatest(0, end_ns - greatest(start_ns, coalesce(running_end_ns, start_ns))))::BIGINT AS known_ns
    FROM _gpu_reach
    WHERE NOT (SELECT is_cut FROM scope_flags)
    GROUP BY gpu_id
),
-- The streams, numbered on each GPU.
streams AS MATERIALIZED (
    SELECT
        s.* EXCLUDE (ops),
        row_number() OVER (PARTITION BY s.gpu_id ORDER BY process_id, device_id, stream_id) AS number,
        count(*) OVER (PARTITION BY s.gpu_id) > 1 AS has_others,
        a.known_ns
    FROM (
        SELECT
            gpu_id, process_id, device_id, stream_id,
            count(*) FILTER (kind = 'kernel') AS kernels,
            count(*) FILTER (kind IN ('copy', 'memset')) AS copies,
            count(*) FILTER (kind = 'graph') AS graphs,
            max(end_ns) - min(start_ns) AS span_ns,
            count(*) AS ops
        FROM ops
        GROUP BY ALL
    ) AS s
    LEFT JOIN single_streams AS a ON a.gpu_id = s.gpu_id AND a.ops = s.ops
),
-- What each operation adds to the busy time of its stream: its part after the latest end so far. These pieces do not
-- overlap within a stream.
pieces AS MATERIALIZED (
    SELECT gpu_id, number, has_others, greatest(start_ns, coalesce(running_end_ns, start_ns)) AS start_ns, end_ns
    FROM (
        SELECT
            s.gpu_id, s.number, s.has_others, o.start_ns, o.end_ns,
            max(o.end_ns) OVER (
                PARTITION BY s.gpu_id, s.number ORDER BY o.start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS running_end_ns
        FROM ops AS o
        JOIN streams AS s
            ON s.process_id = o.process_id AND s.device_id IS NOT DISTINCT FROM o.device_id
            AND s.stream_id IS NOT DISTINCT FROM o.stream_id AND s.known_ns IS NULL
    )
    WHERE running_end_ns IS NULL OR end_ns > running_end_ns
),
-- How many streams are busy at each instant. If it is one, the sum of the numbers of the busy streams is its number.
concurrency AS (
    SELECT
        gpu_id,
        lead(at_ns) OVER along - at_ns AS lasts_ns,
        sum(step) OVER along AS busy_streams,
        sum(step * number) OVER along AS number
    FROM (
        SELECT gpu_id, number, unnest([start_ns, end_ns]) AS at_ns, unnest([1, -1]) AS step FROM pieces WHERE has_others
    )
    WINDOW along AS (PARTITION BY gpu_id ORDER BY at_ns ROWS UNBOUNDED PRECEDING)
),
gpu_busy_times AS (
    SELECT gpu_id, sum(lasts_ns)::BIGINT AS busy_ns FROM concurrency WHERE busy_streams > 0 GROUP BY gpu_id
),
-- The busy time of a stream up to an instant follows from the last piece that began before it. The difference between
-- both ends of an interval of the wall time is the busy time in it. Without --nvtx, --from and --to, everything is
-- within the wall time.
busy_in_wall AS (
    SELECT i.gpu_id, i.number, sum(i.sign * (p.until_ns + least(p.end_ns, i.at_ns) - p.end_ns))::BIGINT AS busy_ns
    FROM (
        SELECT s.gpu_id, s.number, unnest([w.start_ns, w.end_ns]) AS at_ns, unnest([-1, 1]) AS sign
        FROM streams AS s CROSS JOIN wall AS w
    ) AS i
    ASOF JOIN (
        SELECT
            gpu_id, number, start_ns, end_ns,
            sum(end_ns - start_ns) OVER (
                PARTITION BY gpu_id, number ORDER BY start_ns, end_ns ROWS UNBOUNDED PRECEDING
            ) AS until_ns
        FROM pieces WHERE (SELECT is_cut FROM scope_flags) AND end_ns > start_ns
    ) AS p ON p.gpu_id = i.gpu_id AND p.number = i.number AND p.start_ns <= i.at_ns
    GROUP BY ALL
),
-- Busy time of each stream: in total, in the wall time, and while other streams are busy.
stream_busy AS (
    SELECT
        s.* EXCLUDE (known_ns), b.busy_ns,
        CASE WHEN (SELECT is_cut FROM scope_flags) THEN coalesce(w.busy_ns, 0) ELSE b.busy_ns END AS within_ns,
        CASE WHEN s.has_others THEN b.busy_ns - coalesce(a.alone_ns, 0) ELSE 0 END AS overlap_ns
    FROM streams AS s
    JOIN (
        SELECT gpu_id, number, sum(end_ns - start_ns)::BIGINT AS busy_ns FROM pieces GROUP BY ALL
        UNION ALL
        SELECT gpu_id, number, known_ns FROM streams WHERE known_ns IS NOT NULL
    ) AS b USING (gpu_id, number)
    LEFT JOIN (
        SELECT gpu_id, number, sum(lasts_ns)::BIGINT AS alone_ns FROM concurrency WHERE busy_streams = 1 GROUP BY ALL
    ) AS a USING (gpu_id, number)
    LEFT JOIN busy_in_wall AS w USING (gpu_id, number)
)
SELECT
    m.gpu_id, m.process_id, m.device_id, m.stream_id, m.kernels, m.copies, m.graphs, m.busy_ns, m.within_ns,
    coalesce(g.busy_ns, m.busy_ns) AS gpu_busy_ns, m.overlap_ns, m.span_ns
FROM stream_busy AS m
LEFT JOIN gpu_busy_times AS g USING (gpu_id);
