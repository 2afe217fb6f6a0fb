-- The calls that meet a part of the line.
FROM internal.idle_calls WHERE line_end > $from AND line_start < $to
