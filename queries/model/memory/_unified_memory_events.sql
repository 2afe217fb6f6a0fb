/*
description = "Migrations and page faults of unified memory, each with the kernel during which it began."
[columns]
event = "UM H2D, UM D2H, UM D2D, GPU page faults, CPU page faults"
cause = "Why it moved; NULL for page faults"
start_ns = "When the migration or page fault began"
duration_ns = "Duration of the migration or page fault"
faults = "Page faults; NULL for migrations"
size_bytes = "What moved; NULL for page faults"
in_kernel_ns = "The part of it within that kernel"
name = "The kernel that had started last and was still running; NULL for none"
nvtx_path = "The innermost range of its launch call, or of the thread that makes the most launches"
*/
-- Without events, nothing is joined.
WITH events AS (
    SELECT
        copy_kind AS event, migration_cause AS cause, start_ns, duration_ns, device_id, process_id, NULL AS faults,
        size_bytes
    FROM memcpys WHERE migration_cause IS NOT NULL
    UNION ALL
    SELECT side || ' page faults', NULL, start_ns, duration_ns, device_id, process_id, faults, NULL FROM page_faults
),
kernel_launches AS (
    SELECT k.process_id, k.device_id, c.thread_id, c.start_ns AS api_start_ns, k.start_ns, k.end_ns, k.name_id
    FROM (FROM kernel_events WHERE process_id IN (SELECT process_id FROM events)) AS k
    LEFT JOIN (
        FROM api_calls WHERE process_id IN (SELECT process_id FROM events) AND call_group IN ('launch', 'graph launch')
    ) AS c ON c.process_id = k.process_id AND c.correlation_id = k.correlation_id
),
main_threads AS (
    SELECT process_id, max_by(thread_id, (calls, -thread_id)) AS thread_id
    FROM (SELECT process_id, thread_id, count(*) AS calls FROM kernel_launches WHERE thread_id IS NOT NULL GROUP BY ALL)
    GROUP BY process_id
),
events_with_kernel AS (
    SELECT
        e.*, k.start_ns <= e.start_ns AND k.end_ns > e.start_ns AS in_kernel,
        CASE WHEN in_kernel THEN k.name_id END AS name_id,
        CASE WHEN in_kernel THEN least(e.duration_ns, k.end_ns - e.start_ns) ELSE 0 END AS in_kernel_ns,
        CASE WHEN in_kernel AND k.thread_id IS NOT NULL THEN k.thread_id ELSE m.thread_id END AS thread_id,
        CASE WHEN in_kernel THEN coalesce(k.api_start_ns, k.start_ns) ELSE e.start_ns END AS at_ns
    FROM events AS e
    ASOF LEFT JOIN kernel_launches AS k ON k.process_id = e.process_id AND k.device_id = e.device_id
        AND k.start_ns <= e.start_ns
    LEFT JOIN main_threads AS m ON m.process_id = e.process_id
)
SELECT
    u.event, u.cause, u.start_ns, u.duration_ns, u.faults, u.size_bytes, u.in_kernel_ns, s.name, r.path AS nvtx_path
FROM events_with_kernel AS u
LEFT JOIN strings AS s USING (name_id)
ASOF LEFT JOIN nvtx_places AS p ON p.process_id = u.process_id AND p.thread_id = u.thread_id AND p.start_ns <= u.at_ns
LEFT JOIN nvtx_nesting AS r ON r.range_id = p.range_id;
