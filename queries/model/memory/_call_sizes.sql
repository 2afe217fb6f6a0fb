/*
description = "How much memory each call allocated or freed, where nsys recorded it."
[columns]
size_bytes = "Bytes allocated or freed"
*/
SELECT process_id, correlation_id, sum(size_bytes)::BIGINT AS size_bytes
FROM memory_events
GROUP BY ALL;
