-- Calls that are wanted, by their numbers. Of all calls those are read whose ids lie near: ids rise with time.
SELECT call, thread, start_ns, end_ns
FROM internal.idle_calls SEMI JOIN wanted USING (call)
WHERE correlation_id BETWEEN $from_id AND $to_id
