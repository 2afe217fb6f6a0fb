-- The steps, including the last one: its last collective marks its end, so it needs no step after it.
SELECT step, process_id, start_ns, end_ns
FROM steps
WHERE phase IN ('steady', 'tail') AND step IS NOT NULL
ORDER BY start_ns
