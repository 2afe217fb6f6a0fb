-- The most frequent sequence of operations, which is the typical one, and the steps that have it.
CREATE OR REPLACE TABLE internal.fusion_sequences AS
WITH sequences AS (
    SELECT step, list(hash(token, device_id, stream_id) ORDER BY device_id, stream_id, position) AS tokens
    FROM internal.fusion_operations
    GROUP BY step
)
SELECT tokens, list(step ORDER BY step) AS steps, count(*) AS step_count
FROM sequences
GROUP BY tokens
ORDER BY step_count DESC, len(tokens) DESC, min(step)
LIMIT 1
