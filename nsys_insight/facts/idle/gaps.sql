-- The gaps that end in a window. The bits describe the operation that ends the gap: it has the launch call of the one
-- before (1), migrates managed memory that no call prefetches (2), belongs to a blocking copy (4), reads back to the
-- host (8). A kernel that a graph launched on the device has no call of its own: if no graph was launched since the gap
-- began, it is of a graph that runs already.
SELECT
    coalesce(r.gpu_id, -1) AS gpu_id, r.running_end_ns AS start_ns, r.start_ns AS end_ns,
    coalesce(m.prefetch_call, r.call, -9223372036854775808) AS call,
    (
        CASE
            WHEN m.call IS NOT NULL THEN CASE WHEN m.prefetch_call IS NULL THEN 2 ELSE 0 END
            WHEN d.call_ns <= r.running_end_ns OR (d.call_ns IS NULL AND r.is_same_call) THEN 1
            ELSE 0
        END
        + CASE WHEN b.call IS NULL THEN 0 WHEN b.is_read THEN 12 ELSE 4 END)::UTINYINT AS bits
FROM _gpu_reach AS r
LEFT JOIN (SELECT call_of(correlation_id, process_id) AS call, is_read FROM _blocking_copies) AS b ON b.call = r.call
LEFT JOIN internal.idle_migrations AS m ON m.start_ns = r.start_ns AND m.call = r.call
LEFT JOIN _device_launches AS d ON d.start_ns = r.start_ns AND d.process_id = r.call
WHERE r.start_ns > r.running_end_ns AND r.start_ns >= $from_ns AND r.start_ns < $to_ns
