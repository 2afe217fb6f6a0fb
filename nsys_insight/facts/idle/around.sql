-- The calls that overlap a time. Long calls are few and stored separately, so only those of the others are read that
-- begin about then.
SELECT coalesce(call, -9223372036854775808) AS call, thread, start_ns, end_ns, host
FROM (
    FROM internal.idle_calls WHERE start_ns >= $from_ns - $long_ns AND end_ns - start_ns < $long_ns
    UNION ALL
    FROM internal.idle_long_calls
)
WHERE end_ns >= $from_ns AND start_ns <= $to_ns
