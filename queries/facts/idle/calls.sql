-- The calls that meet a part of the line.
FROM internal.idle_calls WHERE line_end > $from_ns AND line_start < $to_ns
