/*
title = "Where the CPU waits for the GPU"
topic = "idle"
place = 2
in_help = true
question = "Where does the host wait for the GPU, and how much idle time does that cause?"
examples = ["", "--group-by caller"]
aliases = ["cuda_api_sync"]
main = ["steady_idle_ns", "gpu_idle_ns", "calls", "kind", "nvtx_path", "name", "host_wait_ns", "avg_ns"]
details = ["copy_kind", "is_copy", "steady_count", "steady_idle_ns"]
description = """
Counts the calls in which the host waits, by place: what it waits for, the NVTX path on the waiting thread, the
call, and the thread. 'D2H copy' is a blocking device-to-host copy, or one into pageable memory, which blocks even
if its name says Async; 'D2H copy + wait' is a wait for a stream, event or device that completes asynchronous
device-to-host copies of its thread. Both are D2H sync points. 'H2D copy + wait' (D2D …) is a wait at whose end such
a copy was the last operation that the GPU had finished; 'H2D copy' is a blocking one; 'wait' is any other. A copy
into pageable memory and the wait that follows count as one. Where the trace does not say what a call waits for, it
is assumed to wait for everything that its thread began. gpu_idle_ns is the GPU idle time that waits cause, as
classify and host count it: time in which the thread that launched the next operation was in the wait, and the
time of late launches after it in the same gap, up to the rest of the time that the wait blocked the host; without the
wait, the host would have been that far ahead. So a wait costs each GPU at most its own time, no idle time is counted
twice, and a wait that ended while the GPU was busy costs none. steady_count and steady_idle_ns cover the steady
steps: waits that began in one, and idle time in the wall time of one, which may be the next step. Rows are sorted
by steady_idle_ns, which host and diagnose count per token, so the first row is the wait to remove first; without steps,
by gpu_idle_ns."""
reading = """
Removing D2H sync points often saves the most: .item(), .cpu(), .numpy(), printing a loss, a comparison of a tensor
in an if. Few bytes mean a scalar is read back: keep it on the GPU, read back every N steps, or copy to pinned
memory asynchronously and look later. H2D copy + wait: a tensor made from a Python value (torch.tensor(…,
device='cuda')): make it on the GPU, or once. wait: torch.cuda.synchronize, or a library's own. Removing a wait
saves at most gpu_idle_ns. gpu_idle_ns much larger than steady_idle_ns: most of it is in start-up, or between the
steps."""
empty = "No call that makes the host wait is recorded in this scope"
advice = "if the program did use the GPU, capture with: nsys profile -t cuda"

[params.group_by]
default = "call"
choices = ["call", "caller", "stack"]
help = "What one row stands for: the call with its place"

[columns]
kind = "What the host waited for: D2H copy, D2H copy + wait, H2D copy, H2D copy + wait, …, or wait for anything else"
nvtx_path = "The NVTX ranges around the call on its thread; NULL outside all ranges"
name = "The call that waited, or what --group-by selects"
calls = "Waits"
per_range = "Waits per range of --nvtx; NULL without it"
host_wait_ns = "Time that the host was blocked, summed"
avg_ns = "Mean time that the host was blocked"
max_ns = "Longest wait"
gpu_idle_ns = "GPU idle time that these waits caused"
gpu_idle_wall_pct = "gpu_idle_ns as a share of the wall time"
steady_count = "Waits in steady steps; NULL where no steps were found"
steady_idle_ns = "The part of gpu_idle_ns in steady steps; NULL where no steps were found"
avg_bytes = "Mean bytes copied per wait; NULL for wait"
process_id = "Operating system's process id"
thread_id = "Thread that waited"
copy_kind = "The copy that kind names: D2H, H2D, D2D …; NULL for wait"
is_copy = "Whether the call that waited is the copy itself"

[notes]
d2h.text = """
D2H sync points: {calls}<, {per_range} per range>; they cause {gpu_idle_ns} of GPU idle time ({wall_pct} of the wall
time)"""
d2h.query = """
SELECT
    sum(calls) AS calls, sum(gpu_idle_ns) AS gpu_idle_ns, sum(gpu_idle_wall_pct) AS wall_pct,
    CASE WHEN max(s.range_count) > 0 THEN round(sum(calls) / max(s.range_count), 2) END AS per_range
FROM answer CROSS JOIN scope AS s WHERE copy_kind = 'D2H' HAVING count(*) > 0"""

remedy.text = "nsys-insight diagnose says which waits are worth removing, and how"
remedy.query = "SELECT sum(gpu_idle_ns) AS idle_ns FROM answer HAVING idle_ns > 0"

steps.use = "no_steady_steps"
steps.text = """
no steady steps were found, so steady_count and steady_idle_ns are unknown; name an NVTX range with --step-range"""

[ranks]
by = ["kind", "nvtx_path", "name", "copy_kind", "is_copy"]
spread = "gpu_idle_ns"
sum = ["calls", "host_wait_ns", "gpu_idle_ns"]
mean = ["gpu_idle_wall_pct"]
max = ["max_ns"]
ratio = { avg_ns = ["host_wait_ns", "calls"] }
*/
WITH places_by_call AS (
    SELECT NULL::BIGINT AS process_id, NULL::BIGINT AS correlation_id, NULL::VARCHAR AS place WHERE false
    UNION ALL
    SELECT process_id, correlation_id, name FROM _sync_callers WHERE $group_by = 'caller'
    UNION ALL
    SELECT process_id, correlation_id, _stack_text(frames, $stack) FROM _sync_callers WHERE $group_by = 'stack'
),
attributed_idle AS (
    SELECT
        process_id, thread_id, call_start_ns,
        sum(c.idle_ns)::BIGINT AS idle_ns, coalesce(sum(c.idle_ns) FILTER (g.step IS NOT NULL), 0)::BIGINT AS steady_ns
    FROM idle_charges AS c
    LEFT JOIN (FROM step_gpus WHERE phase = 'steady') AS g ON g.step = c.step AND g.gpu_id = c.gpu_id
    WHERE c.charge = 'wait'
    GROUP BY ALL
),
-- Waits whose completed copy was the last operation of the GPU.
ended_with_copy AS (
    SELECT DISTINCT w.process_id, w.thread_id, w.call_start_ns
    FROM waits AS w
    JOIN _held_gaps AS g ON g.charge = 'wait' AND g.process_id = w.process_id AND g.thread_id = w.thread_id
        AND g.call_start_ns = w.call_start_ns AND g.gap_start_ns = w.copy_end_ns
),
grouped_waits AS (
    SELECT
        w.* REPLACE (
            CASE WHEN w.is_copy OR w.copy_kind = 'D2H' OR e.call_start_ns IS NOT NULL THEN w.copy_kind END AS copy_kind,
            CASE WHEN $group_by = 'call' THEN w.name ELSE coalesce(l.place, '(no backtrace)') END AS name
        ),
        coalesce(c.idle_ns, 0) AS idle_ns,
        coalesce(c.steady_ns, 0) AS steady_ns,
        w.start_ns < s.host_end_ns AS is_steady,
        p.range_id
    FROM waits AS w
    LEFT JOIN attributed_idle AS c USING (process_id, thread_id, call_start_ns)
    LEFT JOIN ended_with_copy AS e USING (process_id, thread_id, call_start_ns)
    LEFT JOIN places_by_call AS l ON l.process_id = w.process_id AND l.correlation_id = w.correlation_id
    ASOF LEFT JOIN _steady_windows AS s ON s.process_id = w.process_id AND s.host_start_ns <= w.start_ns
    ASOF LEFT JOIN nvtx_places AS p
        ON p.process_id = w.process_id AND p.thread_id = w.thread_id AND p.start_ns <= w.start_ns
),
folded_paths AS (
    SELECT path, fold(path) AS folded_path
    FROM (SELECT DISTINCT n.path FROM grouped_waits AS p JOIN nvtx_nesting AS n USING (range_id))
)
SELECT
    CASE WHEN p.is_copy THEN p.copy_kind || ' copy' ELSE coalesce(p.copy_kind || ' copy + wait', 'wait') END AS kind,
    f.folded_path AS nvtx_path,
    p.name,
    count(*) AS calls,
    count(*) / nullif((SELECT range_count FROM scope), 0) AS per_range,
    sum(p.wait_ns)::BIGINT AS host_wait_ns,
    avg(p.wait_ns) AS avg_ns,
    max(p.wait_ns) AS max_ns,
    sum(p.idle_ns)::BIGINT AS gpu_idle_ns,
    100.0 * sum(p.idle_ns)::BIGINT / (SELECT sum(duration_ns) FROM wall) AS gpu_idle_wall_pct,
    CASE WHEN EXISTS (FROM steps WHERE phase = 'steady') THEN count(*) FILTER (p.is_steady) END AS steady_count,
    CASE WHEN EXISTS (FROM steps WHERE phase = 'steady') THEN sum(p.steady_ns)::BIGINT END AS steady_idle_ns,
    avg(p.copy_bytes) FILTER (p.copy_kind IS NOT NULL) AS avg_bytes,
    p.process_id,
    p.thread_id,
    p.copy_kind,
    p.is_copy
FROM grouped_waits AS p
LEFT JOIN nvtx_nesting AS n ON n.range_id = p.range_id
LEFT JOIN folded_paths AS f USING (path)
GROUP BY p.copy_kind, p.is_copy, f.folded_path, p.name, p.process_id, p.thread_id
ORDER BY sum(p.steady_ns) DESC, gpu_idle_ns DESC, host_wait_ns DESC, kind, nvtx_path, p.name, p.process_id, p.thread_id
