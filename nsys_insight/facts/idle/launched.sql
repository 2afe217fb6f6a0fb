-- The calls with the numbers in `missing_calls`. Ids increase with time, so only calls in their range of ids are read.
SELECT call, thread, start_ns, end_ns
FROM internal.idle_calls SEMI JOIN missing_calls USING (call)
WHERE correlation_id BETWEEN $from_id AND $to_id
