/*
title = "Where the host waits for the GPU"
topic = "waits"
place = 1
question = "Where does the host wait for the GPU, and how much idle does that cause?"
aliases = ["cuda_api_sync"]
details = ["copy_kind", "is_copy"]
description = """
Counts the calls in which the host waits, by place: what it waits for, the NVTX path on the waiting thread, the call, and the
thread. 'D2H copy' is a blocking device-to-host copy, or one into pageable memory, which blocks whatever its name says;
'D2H copy + wait' is a wait for a stream, event or device that completes asynchronous device-to-host copies of its thread.
Both are D2H sync points. 'H2D copy + wait' (D2D …) is a wait at whose end such a copy was the last thing that the GPU had
done; 'H2D copy' is a blocking one; 'wait' is any other. A copy into pageable memory and the wait that follows count as
one. Where the trace does not say what a call waits for, it is taken to wait for everything that its thread began.
gpu_idle_ns is the idle time that waits cause: a wait during which the GPU ran dry is charged with the whole gap, to the
start of the next operation; one that began in the gap with its own time there, which the first is not charged with. So no
idle time is charged twice, and a wait that ended while the GPU was busy is charged with none. A wait concerns the GPU that
the trace names, else all GPUs of its process, whose idle times are added."""
reading = """
Removing D2H sync points is often the largest single win: .item(), .cpu(), .numpy(), printing a loss, a comparison of a
tensor in an if. Few bytes mean a scalar is read back: keep it on the GPU, read back every N steps, or copy to pinned memory
asynchronously and look later. H2D copy + wait: a tensor made from a Python value (torch.tensor(…, device='cuda')): make it
on the GPU, or once. wait: torch.cuda.synchronize, or a library's own. Removing a wait wins at most gpu_idle_ns; where the
host is late anyway (launch-bound), no more than host_wait_ns."""
empty = "No call in this scope made the host wait; if the program did use the GPU, capture with: nsys profile -t cuda"

[columns]
kind = "What the host waited for: D2H copy, D2H copy + wait, H2D copy, H2D copy + wait, …, or wait for anything else"
nvtx_path = "The NVTX ranges around the call on its thread; NULL outside all"
name = "The call that waited"
calls = "Waits"
per_range = "Waits per range of --nvtx; NULL without it"
host_wait_ns = "Sum of the time that the host was blocked"
avg_ns = "Mean of it"
max_ns = "Longest"
gpu_idle_ns = "GPU idle time that these waits caused"
gpu_idle_wall_pct = "gpu_idle_ns as a share of the wall"
avg_bytes = "Mean size of what was copied per wait; NULL for wait"
process_id = "Operating system's process id"
thread_id = "Thread that waited"
copy_kind = "Which copy kind is about: D2H, H2D, D2D …; NULL for wait"
is_copy = "Whether the call that waited is that copy itself"

[notes]
d2h = """
SELECT 'D2H sync points: ' || sum(calls) || CASE WHEN max(s.range_count) > 0 THEN
    ', ' || round(sum(calls) / max(s.range_count), 2) || ' per range' ELSE '' END
    || '; they cause ' || round(sum(gpu_idle_ns) / 1e6, 3) || ' ms of GPU idle time ('
    || round(sum(gpu_idle_wall_pct), 2) || ' % of the wall)'
FROM answer CROSS JOIN scope AS s WHERE copy_kind = 'D2H' HAVING count(*) > 0"""
[agent]
rows = 4
columns = ["kind", "nvtx_path", "name", "calls", "gpu_idle_ns", "gpu_idle_wall_pct"]
*/
WITH waiting AS MATERIALIZED (
    FROM waits
),
gpus_used AS (
    SELECT DISTINCT process_id, device_id, gpu_of(process_id, device_id) AS gpu_id FROM gpu_ops
),
-- A gap in which a wait ends begins or ends within the same 16 µs, or lasts longer than those: so few of millions are left
-- to be sorted.
near AS (
    FROM gpu_gaps
    WHERE start_ns // 16384 IN (SELECT end_ns // 16384 FROM waiting)
        OR end_ns // 16384 IN (SELECT end_ns // 16384 FROM waiting) OR duration_ns >= 16384
),
in_gap AS (
    SELECT
        w.process_id, w.correlation_id, w.start_ns, w.end_ns, w.copy_end_ns, w.gpu_id,
        g.start_ns AS gap_start_ns, g.duration_ns AS gap_ns
    FROM (
        SELECT w.*, u.gpu_id
        FROM waiting AS w
        JOIN gpus_used AS u ON u.process_id = w.process_id AND u.device_id = coalesce(w.device_id, u.device_id)
    ) AS w
    ASOF JOIN near AS g ON g.gpu_id = w.gpu_id AND g.start_ns <= w.end_ns
    WHERE w.end_ns < g.end_ns
),
in_turn AS (
    SELECT
        *,
        CASE WHEN start_ns > gap_start_ns THEN
            least(end_ns, lead(start_ns) OVER (PARTITION BY gpu_id, gap_start_ns ORDER BY start_ns, end_ns, process_id, correlation_id)) - start_ns
        ELSE 0 END AS own_ns,
        start_ns <= gap_start_ns AND 1 = row_number() OVER (
            PARTITION BY gpu_id, gap_start_ns
            ORDER BY start_ns <= gap_start_ns DESC, start_ns DESC, end_ns DESC, process_id, correlation_id
        ) AS drained
    FROM in_gap
),
charged AS (
    SELECT
        process_id, correlation_id,
        CASE WHEN drained THEN gap_ns - sum(own_ns) OVER (PARTITION BY gpu_id, gap_start_ns) ELSE own_ns END AS idle_ns,
        copy_end_ns = gap_start_ns AS ended_with_copy
    FROM in_turn
),
placed AS (
    SELECT
        w.* REPLACE (CASE WHEN w.is_copy OR w.copy_kind = 'D2H' OR c.ended_with_copy THEN w.copy_kind END AS copy_kind),
        coalesce(c.idle_ns, 0) AS idle_ns,
        p.range_id
    FROM waiting AS w
    LEFT JOIN (
        SELECT process_id, correlation_id, sum(idle_ns)::BIGINT AS idle_ns, bool_or(ended_with_copy) AS ended_with_copy
        FROM charged GROUP BY ALL
    ) AS c USING (process_id, correlation_id)
    ASOF LEFT JOIN nvtx_places AS p
        ON p.process_id = w.process_id AND p.thread_id = w.thread_id AND p.start_ns <= w.start_ns
)
SELECT
    CASE WHEN p.is_copy THEN p.copy_kind || ' copy' ELSE coalesce(p.copy_kind || ' copy + wait', 'wait') END AS kind,
    n.path AS nvtx_path,
    p.name,
    count(*) AS calls,
    count(*) / nullif((SELECT range_count FROM scope), 0) AS per_range,
    sum(p.wait_ns)::BIGINT AS host_wait_ns,
    avg(p.wait_ns) AS avg_ns,
    max(p.wait_ns) AS max_ns,
    sum(p.idle_ns)::BIGINT AS gpu_idle_ns,
    100.0 * sum(p.idle_ns)::BIGINT / (SELECT sum(duration_ns) FROM wall) AS gpu_idle_wall_pct,
    avg(p.copy_bytes) FILTER (p.copy_kind IS NOT NULL) AS avg_bytes,
    p.process_id,
    p.thread_id,
    p.copy_kind,
    p.is_copy
FROM placed AS p
LEFT JOIN nvtx_nesting AS n ON n.range_id = p.range_id
GROUP BY p.copy_kind, p.is_copy, n.path, p.name, p.process_id, p.thread_id
ORDER BY gpu_idle_ns DESC, host_wait_ns DESC, kind, nvtx_path, p.name, p.process_id, p.thread_id
