-- The peak of allocated device memory on one GPU of one process. NULL if the capture has no memory usage events.
SELECT max(held_bytes)::BIGINT AS peak_memory_bytes
FROM (
    SELECT sum(CASE operation WHEN 'allocation' THEN size_bytes WHEN 'deallocation' THEN -size_bytes END)
        OVER (
            PARTITION BY process_id, device_id ORDER BY start_ns, operation DESC, address ROWS UNBOUNDED PRECEDING
        ) AS held_bytes
    FROM memory_events
    WHERE memory IN ('device', 'device static', 'managed')
)
