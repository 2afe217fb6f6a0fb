-- The calls that touch a time. Few last long: those that do were set aside, so that of the others only those need to be
-- read that begin about then.
SELECT coalesce(call, -9223372036854775808) AS call, thread, start_ns, end_ns, host
FROM (
    FROM internal.idle_calls WHERE start_ns >= $from_ns - $long_ns AND end_ns - start_ns < $long_ns
    UNION ALL
    FROM internal.idle_long_calls
)
WHERE end_ns >= $from_ns AND start_ns <= $to_ns
