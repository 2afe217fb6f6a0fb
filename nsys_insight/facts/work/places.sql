-- The NVTX range that these threads are in, from when to when; -1 outside all ranges.
SELECT line_start, coalesce(lead(line_start) OVER (ORDER BY line_start, id), 9223372036854775807) AS line_end, id
FROM (
    SELECT from_ns + shift_ns AS line_start, -1::BIGINT AS id
    FROM internal.work_tracks
    UNION ALL
    SELECT greatest(p.start_ns, l.from_ns) + l.shift_ns, coalesce(p.range_id, -1)
    FROM nvtx_places AS p
    JOIN internal.work_tracks AS l ON l.thread = thread_of(p.thread_id, p.process_id)
    WHERE p.start_ns <= l.to_ns
    -- Of the ranges before the first gap, keep the last.
    QUALIFY p.start_ns > l.from_ns
        OR row_number() OVER (PARTITION BY l.shift_ns, p.start_ns <= l.from_ns ORDER BY p.start_ns DESC) = 1
)
