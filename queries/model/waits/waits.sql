/*
description = """One row per time that the host waited for the GPU: calls that synchronize, blocking copies from or to
    host memory, and copies into pageable memory, which block even if their name says Async."""
stored = true
[columns]
thread_id = "Thread that waited"
start_ns = """When the wait began; for a copy into pageable memory and the call that then waits for it, when the copy
    was called"""
call_start_ns = "When the call that waited began"
end_ns = "When the call returned"
wait_ns = "How long the host was blocked: the durations of the one or two calls"
name = "The call that waited"
is_copy = "Whether the call is the copy itself"
copy_kind = """D2H if a device-to-host copy was waited for, even among others; else the kind of the last asynchronous
    copy of its thread that the call completed; NULL for none"""
copy_bytes = "Size of the copies of that kind that it completed"
copy_end_ns = "When the last of them ended on the GPU"
device_id = "CUDA device waited for; NULL where the trace does not say or it is none in particular"
correlation_id = "The call's id: joins with `api_calls`, together with process_id"
*/
-- A wait is one call, with one exception. A device-to-host copy into pageable memory is done when its call returns,
-- even if it is asynchronous. If the usual cudaStreamSynchronize follows, both are one wait, which begins with the
-- copy.
WITH calls AS MATERIALIZED (
    SELECT process_id, thread_id, start_ns, end_ns, duration_ns, name, call_group, correlation_id
    FROM api_calls
    WHERE call_group IN ('sync', 'copy', 'graph launch') OR name LIKE 'cu%EventRecord%'
    -- A driver call inside a runtime call is a part of it.
    QUALIFY coalesce(end_ns > max(end_ns) OVER (
        PARTITION BY process_id, thread_id ORDER BY start_ns, end_ns DESC, api DESC, correlation_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), true)
),
-- Copies that the host called, each with its call: blocking if the call waits for the copy.
copies AS MATERIALIZED (
    SELECT
        c.*, m.* EXCLUDE (process_id, correlation_id),
        b.is_read IS NOT NULL AND c.name NOT LIKE '%Async%' AS is_blocking,
        b.is_read IS NOT NULL AND c.name LIKE '%Async%' AS is_waiting
    FROM calls AS c
    JOIN (
        SELECT
            process_id, correlation_id, copy_kind, device_id, stream_id, any_value(context_id) AS context_id,
            sum(size_bytes)::BIGINT AS copy_bytes, max(end_ns) AS copy_end_ns
        FROM memcpys
        GROUP BY process_id, correlation_id, copy_kind, device_id, stream_id
        -- One call may copy in several directions or on several devices. It waits once.
        QUALIFY row_number() OVER (
            PARTITION BY process_id, correlation_id
        ORDER BY copy_kind <> 'D2H', max(end_ns) DESC, copy_kind, device_id, stream_id
        ) = 1
    ) AS m USING (process_id, correlation_id)
    LEFT JOIN _blocking_copies AS b USING (process_id, correlation_id)
),
-- What a synchronizing call waits for: a stream, a device, or everything if the trace does not say; up to the call, or
-- up to where the event that it waits for was recorded.
sync_calls AS (
    SELECT c.*, s.device_id, s.context_id, s.stream_id, s.event_id
    FROM calls AS c
    LEFT JOIN (
        SELECT
            process_id, correlation_id, min(device_id) AS device_id, min(context_id) AS context_id,
            min(stream_id) AS stream_id, min(event_id) AS event_id
        FROM sync_events GROUP BY ALL
    ) AS s ON s.process_id = c.process_id AND s.correlation_id = c.correlation_id
    WHERE c.call_group = 'sync'
),
-- When events were recorded, and on which stream.
event_recordings AS (
    SELECT c.start_ns, e.process_id, e.event_id, e.device_id, e.context_id, e.stream_id
    FROM event_records AS e
    JOIN calls AS c ON c.process_id = e.process_id AND c.correlation_id = e.correlation_id
),
-- Synchronizing calls with what they wait for, up to until_ns.
sync_targets AS MATERIALIZED (
    SELECT
        w.* EXCLUDE (stream_id, event_id, device_id, context_id),
        coalesce(r.device_id, w.device_id) AS device_id,
        coalesce(r.context_id, w.context_id) AS context_id,
        coalesce(r.stream_id, w.stream_id) AS stream_id,
        coalesce(r.start_ns, w.start_ns) AS until_ns
    FROM sync_calls AS w
    ASOF LEFT JOIN event_recordings AS r
        ON r.process_id = w.process_id AND r.event_id = w.event_id AND r.start_ns <= w.start_ns
),
-- The first call that completes what was put on a stream before until_ns. It need not be the call whose event was
-- recorded next: a wait for the stream may come before the wait for the event.
completions AS (
    SELECT
        p.process_id, p.thread_id, p.device_id, p.stream_id, w.until_ns,
        arg_min(w.correlation_id, w.start_ns) OVER (
            PARTITION BY p.process_id, p.thread_id, p.device_id, p.stream_id ORDER BY w.until_ns DESC
        ) AS wait_id
    FROM sync_targets AS w
    JOIN (
        SELECT process_id, thread_id, device_id, stream_id, any_value(context_id) AS context_id
        FROM copies WHERE NOT is_blocking
        GROUP BY process_id, thread_id, device_id, stream_id
    ) AS p
        ON p.process_id = w.process_id AND p.thread_id = w.thread_id
            AND p.stream_id = coalesce(w.stream_id, p.stream_id)
        -- nsys 2021 to 2023 states device 0 for waits on any device. The context is right.
        AND (p.device_id = coalesce(w.device_id, p.device_id) OR p.context_id = w.context_id)
),
-- Copies that did not block, each with the call that completes it. is_joined: the copy and that call are one wait.
async_copies AS MATERIALIZED (
    SELECT
        c.*,
        w.wait_id,
        is_waiting
            AND row_number() OVER (
                PARTITION BY c.process_id, w.wait_id, is_waiting ORDER BY c.start_ns DESC, c.correlation_id DESC
            )
                = 1
            AND w.wait_id IS NOT NULL AS is_joined
    FROM copies AS c
    ASOF LEFT JOIN completions AS w
        ON w.process_id = c.process_id AND w.thread_id = c.thread_id AND w.device_id = c.device_id
        AND w.stream_id = c.stream_id AND w.until_ns > c.start_ns
    WHERE NOT c.is_blocking
)
SELECT
    w.process_id, w.thread_id, coalesce(c.joined_start_ns, w.start_ns) AS start_ns, w.start_ns AS call_start_ns,
    w.end_ns,
    w.duration_ns + coalesce(c.joined_ns, 0) AS wait_ns,
    w.name, false AS is_copy, c.copy_kind, c.copy_bytes, c.copy_end_ns, w.device_id, w.correlation_id
FROM sync_targets AS w
LEFT JOIN (
    SELECT
        process_id, wait_id, copy_kind, sum(copy_bytes)::BIGINT AS copy_bytes, max(copy_end_ns) AS copy_end_ns,
        max(start_ns) FILTER (is_joined) AS joined_start_ns, max(duration_ns) FILTER (is_joined) AS joined_ns
    FROM async_copies
    GROUP BY process_id, wait_id, copy_kind
    QUALIFY row_number() OVER (
        PARTITION BY process_id, wait_id ORDER BY copy_kind <> 'D2H', max(copy_end_ns) DESC, copy_kind
    )
        = 1
) AS c ON c.process_id = w.process_id AND c.wait_id = w.correlation_id
UNION ALL
SELECT
    process_id, thread_id, start_ns, start_ns, end_ns, duration_ns, name, true,
    copy_kind, copy_bytes, copy_end_ns, device_id, correlation_id
FROM copies WHERE is_blocking
UNION ALL
SELECT
    process_id, thread_id, start_ns, start_ns, end_ns, duration_ns, name, true,
    copy_kind, copy_bytes, copy_end_ns, device_id, correlation_id
FROM async_copies WHERE is_waiting AND NOT is_joined;
