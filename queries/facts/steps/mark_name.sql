-- What an operation is called.
SELECT
    coalesce(
        any_value(n.name),
        any_value(CASE s.kind WHEN 'graph' THEN 'CUDA graph' WHEN 'memset' THEN s.kind ELSE s.kind || ' copy' END)
    ) AS name
FROM internal.step_stream AS s
LEFT JOIN kernel_events AS k
    ON s.kind = 'kernel' AND k.correlation_id = s.correlation_id AND k.start_ns = s.start_ns AND k.process_id = $process
LEFT JOIN strings AS n ON n.name_id = k.name_id
WHERE s.pos = $pos
