/*
title = "Migrations and page faults of unified memory"
topic = "waits"
place = 4
question = "Which pages of unified memory move, because of which kernel or range, and what does that cost?"
aliases = ["um_sum", "um_total_sum", "um_cpu_page_faults_sum"]
description = """
Adds up the copies that moved unified memory (cudaMallocManaged) and the page faults, by what ran meanwhile: the kernel that had
begun last and was still running when the event began, and the innermost NVTX range of the call that launched it; without a
kernel, the range of the thread that launches most. in_kernels_ns is how much of the events' time lay within those kernels,
which wait for it at least in part. Page faults need --cuda-um-gpu-page-faults=true and --cuda-um-cpu-page-faults=true."""
reading = """
Migrations to the GPU during a kernel: it waits for pages that it touches first; cudaMemPrefetchAsync before the launch moves
them in large pieces. Migrations back, or faults of the CPU: prefetch to cudaCpuDeviceId before the host reads. Both again and
again: cudaMemAdvise (SetReadMostly, SetPreferredLocation, SetAccessedBy), or memory of one side and explicit copies. Evictions:
more is used than the GPU has."""
empty = "No unified memory moved in this scope, and no page faults are in the trace"

[columns]
event = "UM H2D, UM D2H or UM D2D: pages moved; GPU page faults, CPU page faults"
cause = "Why the pages moved: page fault, prefetch, speculative, eviction, access counters, unknown; NULL for page faults"
name = "The kernel that ran when it began; NULL when none did"
nvtx_path = "The innermost NVTX range; NULL outside all"
calls = "Copies, groups of faults of a GPU, or faults of the CPU"
faults = "Page faults; NULL for copies"
size_bytes = "Bytes moved; NULL for page faults"
total_ns = "Sum of their durations; NULL for faults of the CPU"
wall_pct = "total_ns as a share of the wall"
in_kernels_ns = "How much of it lay within the kernel"

[notes]
faults = """
SELECT 'page faults are not in the trace: capture with --cuda-um-gpu-page-faults=true --cuda-um-cpu-page-faults=true'
FROM answer HAVING count(*) > 0 AND count(faults) = 0"""
*/
WITH events AS (
    SELECT copy_kind AS event, migration_cause AS cause, start_ns, duration_ns, device_id, process_id, NULL AS faults, size_bytes
    FROM memcpys WHERE migration_cause IS NOT NULL
    UNION ALL
    SELECT side || ' page faults', NULL, start_ns, duration_ns, device_id, process_id, faults, NULL FROM page_faults
),
-- Where nothing happened, nothing is joined.
launched AS (
    SELECT k.process_id, k.device_id, c.thread_id, c.start_ns AS api_start_ns, k.start_ns, k.end_ns, k.name_id
    FROM (FROM kernel_events WHERE process_id IN (SELECT process_id FROM events)) AS k
    LEFT JOIN (
        FROM api_calls WHERE process_id IN (SELECT process_id FROM events) AND call_group IN ('launch', 'graph launch')
    ) AS c ON c.process_id = k.process_id AND c.correlation_id = k.correlation_id
),
main_threads AS (
    SELECT process_id, max_by(thread_id, (calls, -thread_id)) AS thread_id
    FROM (SELECT process_id, thread_id, count(*) AS calls FROM launched WHERE thread_id IS NOT NULL GROUP BY ALL)
    GROUP BY process_id
),
under AS (
    SELECT
        e.*, k.start_ns <= e.start_ns AND k.end_ns > e.start_ns AS in_kernel,
        CASE WHEN in_kernel THEN k.name_id END AS name_id,
        CASE WHEN in_kernel THEN least(e.duration_ns, k.end_ns - e.start_ns) ELSE 0 END AS in_kernel_ns,
        CASE WHEN in_kernel AND k.thread_id IS NOT NULL THEN k.thread_id ELSE m.thread_id END AS thread_id,
        CASE WHEN in_kernel THEN coalesce(k.api_start_ns, k.start_ns) ELSE e.start_ns END AS at_ns
    FROM events AS e
    ASOF LEFT JOIN launched AS k ON k.process_id = e.process_id AND k.device_id = e.device_id AND k.start_ns <= e.start_ns
    LEFT JOIN main_threads AS m ON m.process_id = e.process_id
)
SELECT
    u.event,
    u.cause,
    s.name,
    r.path AS nvtx_path,
    count(*) AS calls,
    sum(u.faults)::BIGINT AS faults,
    sum(u.size_bytes)::BIGINT AS size_bytes,
    sum(u.duration_ns)::BIGINT AS total_ns,
    100.0 * sum(u.duration_ns)::BIGINT / (SELECT sum(duration_ns) FROM wall) AS wall_pct,
    sum(u.in_kernel_ns)::BIGINT AS in_kernels_ns
FROM under AS u
LEFT JOIN strings AS s USING (name_id)
ASOF LEFT JOIN nvtx_places AS p ON p.process_id = u.process_id AND p.thread_id = u.thread_id AND p.start_ns <= u.at_ns
LEFT JOIN nvtx_nesting AS r ON r.range_id = p.range_id
GROUP BY ALL
ORDER BY total_ns DESC NULLS LAST, calls DESC, event, cause, name, nvtx_path
