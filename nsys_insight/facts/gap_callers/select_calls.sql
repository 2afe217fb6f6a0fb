CREATE OR REPLACE TABLE internal.chosen_calls AS
SELECT DISTINCT o.process_id, o.correlation_id, true AS is_call
FROM longest_gaps AS g
JOIN _gap_operations AS o ON o.gpu_id = g.gpu_id AND o.start_ns = g.next_ns
WHERE o.correlation_id IS NOT NULL;
