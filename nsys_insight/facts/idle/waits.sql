-- What operations of processes with several GPUs waited for on the GPU. From wait_ns on, when the launch call has
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
-- If the operation before it in the stream started after the call to wait, the wait may be over: that one waited.
waiting_operations AS (
    SELECT o.gpu_id, o.end_ns, o.returned_ns AS wait_ns
    FROM (
        SELECT g.*, w.stream_id
        FROM gaps AS g
        JOIN _gpu_work AS w ON w.gpu_id = g.gpu_id AND w.start_ns = g.end_ns AND w.process_id = g.process_id
        WHERE g.host = idle_host('late') AND g.end_ns - g.returned_ns >= $min_ns
    ) AS o
    ASOF JOIN stream_waits AS s
        ON s.process_id = o.process_id AND s.stream_id = o.stream_id AND s.start_ns <= o.call_ns
    ASOF LEFT JOIN (
        SELECT process_id, stream_id, start_ns FROM _gpu_work WHERE stream_id IN (SELECT stream_id FROM stream_waits)
    ) AS p
        ON p.process_id = o.process_id AND p.stream_id = o.stream_id AND p.start_ns < o.end_ns
    WHERE coalesce(p.start_ns < s.start_ns, true)
),
staged_copies AS MATERIALIZED (
    SELECT
        process_id, gpu_of(process_id, source_id) AS source_gpu_id, source_ns, gpu_of(process_id, target_id) AS gpu_id,
        start_ns
    FROM _staged_copies
    WHERE is_in_pieces
),
copy_starts AS (
    SELECT c.*, coalesce(greatest(g.start_ns, g.call_ns), c.source_ns) AS copy_ns
    FROM staged_copies AS c LEFT JOIN gaps AS g ON g.gpu_id = c.source_gpu_id AND g.end_ns = c.source_ns
)
SELECT gpu_id, end_ns, min(wait_ns) AS wait_ns, min(copy_ns) AS copy_ns
FROM (
    SELECT gpu_id, end_ns, wait_ns, NULL AS copy_ns FROM waiting_operations
    UNION ALL
    SELECT source_gpu_id, source_ns, NULL, copy_ns FROM copy_starts
    UNION ALL
    SELECT c.gpu_id, c.start_ns, g.returned_ns, c.copy_ns
    FROM copy_starts AS c JOIN gaps AS g ON g.gpu_id = c.gpu_id AND g.end_ns = c.start_ns
)
GROUP BY gpu_id, end_ns
