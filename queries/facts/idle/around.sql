-- The calls that touch a time.
SELECT coalesce(call, -9223372036854775808) AS call, thread, start_ns, end_ns, host
FROM internal.idle_calls
WHERE end_ns >= $from_ns AND start_ns <= $to_ns
