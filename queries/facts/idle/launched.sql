-- Calls that are wanted, by their numbers.
SELECT call, thread, start_ns, end_ns FROM internal.idle_calls SEMI JOIN wanted USING (call)
