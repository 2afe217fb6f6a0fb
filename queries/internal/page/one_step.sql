-- The step with the given number.
SELECT step, process_id, start_ns, end_ns
FROM steps
WHERE step = $step
ORDER BY process_id
LIMIT 1
