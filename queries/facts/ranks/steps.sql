-- Where the last step ends its last collective tells: that nothing follows does not matter here.
SELECT step, process_id, start_ns, end_ns
FROM steps
WHERE phase IN ('steady', 'tail') AND step IS NOT NULL
ORDER BY start_ns
