-- What operations waited for on the GPU, where there are several GPUs. From wait_ns on, when the launch call has
-- returned, the stream of the operation that starts at end_ns waits for an event, or the second half of a copy between
-- GPUs waits for the first. From copy_ns on, such a copy is in progress. Without peer access it goes through host
-- memory, in pieces of 1 MiB, and its two rows (D2H, H2D) have all of its bytes, but the time of the last piece
-- (docs/evidence/odd.md).
CREATE OR REPLACE TABLE internal.idle_waits AS
WITH gaps AS MATERIALIZED (
    SELECT gpu_id, start_ns, end_ns, thread >> 24 AS process_id, call_ns, returned_ns, host
    FROM facts.idle_time
    WHERE host IN (idle_host('late'), idle_host('launched before'), idle_host('launch call in progress'))
        AND end_ns - greatest(start_ns, call_ns) >= $min_ns
),
stream_waits AS MATERIALIZED (
    SELECT s.start AS start_ns, pid_of(s.globalPid) AS process_id, s.streamId AS stream_id
    FROM unscoped.CUPTI_ACTIVITY_KIND_SYNCHRONIZATION AS s
    JOIN unscoped.CUPTI_ACTIVITY_KIND_RUNTIME AS r
        ON r.correlationId = s.correlationId AND pid_of(r.globalTid) = pid_of(s.globalPid)
    JOIN _api_names AS n ON n.name_id = r.nameId AND n.name LIKE '%StreamWaitEvent%'
),
halves AS MATERIALIZED (
    SELECT *, gpu_of(process_id, device_id) AS gpu_id FROM _staged_copies
),
-- The operations that may have waited: those that start late after their launch call, and what the copies read.
operations AS MATERIALIZED (
    SELECT
        g.gpu_id, g.end_ns AS start_ns, g.process_id, w.stream_id, g.call_ns, g.returned_ns,
        NULL::BIGINT AS correlation_id
    FROM gaps AS g
    JOIN _gpu_work AS w ON w.gpu_id = g.gpu_id AND w.start_ns = g.end_ns AND w.process_id = g.process_id
    WHERE g.host = idle_host('late') AND g.end_ns - g.returned_ns >= $min_ns
        AND w.stream_id IN (SELECT stream_id FROM stream_waits)
    UNION ALL
    SELECT h.gpu_id, h.start_ns, h.process_id, h.stream_id, r.start, r."end", h.correlation_id
    FROM (FROM halves WHERE is_source) AS h
    JOIN unscoped.CUPTI_ACTIVITY_KIND_RUNTIME AS r
        ON r.correlationId = h.correlation_id AND pid_of(r.globalTid) = h.process_id
),
-- A wait is for the operation whose launch call follows: one that was launched in between has waited instead.
placed_operations AS MATERIALIZED (
    SELECT
        o.*, p.end_ns AS previous_end_ns,
        coalesce(s.start_ns > coalesce(l.start, p.start_ns), s.start_ns IS NOT NULL) AS is_waiting
    FROM operations AS o
    ASOF LEFT JOIN stream_waits AS s
        ON s.process_id = o.process_id AND s.stream_id = o.stream_id AND s.start_ns <= o.call_ns
    ASOF LEFT JOIN (
        SELECT process_id, stream_id, start_ns, end_ns, correlation_id FROM _gpu_work
        WHERE stream_id IN (SELECT stream_id FROM operations)
    ) AS p
        ON p.process_id = o.process_id AND p.stream_id = o.stream_id AND p.start_ns < o.start_ns
    LEFT JOIN unscoped.CUPTI_ACTIVITY_KIND_RUNTIME AS l
        ON l.correlationId = p.correlation_id AND pid_of(l.globalTid) = p.process_id
),
-- A copy begins when the operation before it in its stream has ended, and the host has called it. If the stream waits
-- for an event in between, its start is unknown.
copy_starts AS (
    SELECT
        gpu_id, start_ns, process_id, correlation_id,
        CASE WHEN is_waiting THEN start_ns ELSE least(start_ns, greatest(previous_end_ns, call_ns)) END AS copy_ns
    FROM placed_operations WHERE correlation_id IS NOT NULL
)
SELECT gpu_id, end_ns, min(wait_ns) AS wait_ns, min(copy_ns) AS copy_ns
FROM (
    SELECT gpu_id, start_ns AS end_ns, returned_ns AS wait_ns, NULL AS copy_ns
    FROM placed_operations WHERE is_waiting AND correlation_id IS NULL
    UNION ALL
    SELECT gpu_id, start_ns, NULL, copy_ns FROM copy_starts
    UNION ALL
    -- The half that is written waits for the other one, which a scope may leave out.
    SELECT h.gpu_id, h.start_ns, g.returned_ns, c.copy_ns
    FROM (FROM halves WHERE NOT is_source) AS h
    JOIN gaps AS g ON g.gpu_id = h.gpu_id AND g.end_ns = h.start_ns
    LEFT JOIN copy_starts AS c ON c.process_id = h.process_id AND c.correlation_id = h.correlation_id
)
GROUP BY gpu_id, end_ns
