/*
title = "CUDA streams: work and overlap"
topic = "program"
place = 2
question = "Which streams are busy, and do they overlap?"
description = """
Describes each stream on which something ran. busy_ns is the union of its kernels, copies, memsets and whole graphs;
overlap_ns the part of that in which another stream of the same GPU was busy too, of whatever process. span_ns is the time
from its first operation to the end of its last. Streams are numbered within a process. A scope keeps what begins (--from,
--to) or was launched (--nvtx) in it to its end: busy_ns may reach beyond the wall, wall_pct has only what is within."""
reading = """
One stream with an overlap of 0: everything runs in turn, so copies and independent kernels could overlap on streams of
their own. Many streams with little overlap: they wait for each other (events, the default stream) or each kernel fills the
GPU. Copies on the stream of the kernels do not overlap with them: put them on another, from pinned memory. The default
stream (null stream) waits for all other streams: use non-blocking ones or --default-stream per-thread."""
empty = "No GPU operations in this scope; if the program did use the GPU, capture with: nsys profile -t cuda"

[columns]
process_id = "Operating system's process id"
device_id = "CUDA device number within the process"
stream_id = "CUDA stream, numbered by CUPTI"
stream_type = "null stream; default stream, which waits for the null stream and it for this one; non-blocking stream; NULL when the trace does not say"
priority = "Lower is more urgent; NULL when the trace does not say"
kernels = "Kernels that ran on it"
copies = "Copies and memsets"
graphs = "CUDA graphs that ran as a whole, traced without their kernels"
busy_ns = "Time in which something ran on it"
wall_pct = "The part of busy_ns within the wall, as a share of it"
gpu_busy_pct = "busy_ns as a share of the time in which the GPU was busy with any stream"
overlap_ns = "Part of busy_ns in which another stream of the GPU was busy too"
overlap_pct = "overlap_ns as a share of busy_ns"
span_ns = "From its first operation to the end of its last"
gpu_id = "The machine's GPU where the trace says which, else the CUDA device number"

[notes]
concurrency = """
SELECT string_agg('GPU ' || gpu_id || ': while it is busy, ' || round(streams_busy, 2) || ' of ' || streams || ' streams are, on average', '; ' ORDER BY gpu_id)
FROM (SELECT gpu_id, count(*) AS streams, sum(gpu_busy_pct) / 100 AS streams_busy FROM answer GROUP BY gpu_id HAVING count(*) > 1)"""
*/
WITH ops AS (
    SELECT
        kind, start_ns, greatest(start_ns, end_ns) AS end_ns, process_id, device_id, stream_id,
        gpu_of(process_id, device_id) AS gpu_id
    FROM gpu_ops
),
streams AS MATERIALIZED (
    SELECT
        *,
        row_number() OVER (PARTITION BY gpu_id ORDER BY process_id, device_id, stream_id) AS number,
        count(*) OVER (PARTITION BY gpu_id) > 1 AS has_others
    FROM (
        SELECT
            gpu_id, process_id, device_id, stream_id,
            count(*) FILTER (kind = 'kernel') AS kernels,
            count(*) FILTER (kind IN ('copy', 'memset')) AS copies,
            count(*) FILTER (kind = 'graph') AS graphs,
            max(end_ns) - min(start_ns) AS span_ns
        FROM ops
        GROUP BY ALL
    )
),
-- What each operation adds to the busy time of its stream: the part of it after the latest end so far. These pieces do not
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
            AND s.stream_id IS NOT DISTINCT FROM o.stream_id
    )
    WHERE running_end_ns IS NULL OR end_ns > running_end_ns
),
-- How many streams are busy at each instant; where it is one, the sum of the numbers of the busy streams is its number.
steps AS (
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
gpus_busy AS (
    SELECT gpu_id, sum(lasts_ns)::BIGINT AS busy_ns FROM steps WHERE busy_streams > 0 GROUP BY gpu_id
),
-- How long a stream was busy up to an instant follows from the last piece that began before it; the difference between the
-- ends of the wall's intervals is what they hold. Without --nvtx, --from and --to everything is within the wall.
scoped AS (
    SELECT coalesce(nvtx, from_ns::VARCHAR, to_ns::VARCHAR) IS NOT NULL AS is_cut FROM scope
),
within AS (
    SELECT i.gpu_id, i.number, sum(i.sign * (p.until_ns + least(p.end_ns, i.at_ns) - p.end_ns))::BIGINT AS busy_ns
    FROM (
        SELECT s.gpu_id, s.number, unnest([w.start_ns, w.end_ns]) AS at_ns, unnest([-1, 1]) AS sign
        FROM streams AS s CROSS JOIN wall AS w
    ) AS i
    ASOF JOIN (
        SELECT
            gpu_id, number, start_ns, end_ns,
            sum(end_ns - start_ns) OVER (PARTITION BY gpu_id, number ORDER BY start_ns, end_ns ROWS UNBOUNDED PRECEDING) AS until_ns
        FROM pieces WHERE (SELECT is_cut FROM scoped) AND end_ns > start_ns
    ) AS p ON p.gpu_id = i.gpu_id AND p.number = i.number AND p.start_ns <= i.at_ns
    GROUP BY ALL
),
measured AS (
    SELECT
        s.*, b.busy_ns, CASE WHEN (SELECT is_cut FROM scoped) THEN coalesce(w.busy_ns, 0) ELSE b.busy_ns END AS within_ns,
        CASE WHEN s.has_others THEN b.busy_ns - coalesce(a.alone_ns, 0) ELSE 0 END AS overlap_ns
    FROM streams AS s
    JOIN (SELECT gpu_id, number, sum(end_ns - start_ns)::BIGINT AS busy_ns FROM pieces GROUP BY ALL) AS b USING (gpu_id, number)
    LEFT JOIN (
        SELECT gpu_id, number, sum(lasts_ns)::BIGINT AS alone_ns FROM steps WHERE busy_streams = 1 GROUP BY ALL
    ) AS a USING (gpu_id, number)
    LEFT JOIN within AS w USING (gpu_id, number)
)
SELECT
    m.process_id,
    m.device_id,
    m.stream_id,
    c.stream_type,
    c.priority,
    m.kernels,
    m.copies,
    m.graphs,
    m.busy_ns,
    100.0 * m.within_ns / (SELECT sum(duration_ns) FROM wall) AS wall_pct,
    100.0 * m.busy_ns / nullif(coalesce(g.busy_ns, m.busy_ns), 0) AS gpu_busy_pct,
    m.overlap_ns,
    100.0 * m.overlap_ns / nullif(m.busy_ns, 0) AS overlap_pct,
    m.span_ns,
    m.gpu_id
FROM measured AS m
LEFT JOIN gpus_busy AS g USING (gpu_id)
LEFT JOIN (
    SELECT process_id, stream_id, min(stream_type) AS stream_type, min(priority) AS priority FROM cuda_streams GROUP BY ALL
) AS c USING (process_id, stream_id)
ORDER BY m.busy_ns DESC, m.process_id, m.device_id, m.stream_id
