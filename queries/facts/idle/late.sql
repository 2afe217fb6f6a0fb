-- Late gaps that begin in a part of the line of `internal.idle_lanes`, and until when their launching thread was at something
-- else.
SELECT
    t.gpu_id, t.start_ns, t.end_ns, t.thread, t.call_ns, t.returned_ns, t.is_copy, t.start_ns + l.shift_ns AS line_start,
    greatest(t.start_ns, least(t.call_ns, t.end_ns)) + l.shift_ns AS line_end
FROM internal.idle_found AS t
JOIN internal.idle_lanes AS l USING (thread)
WHERE t.host = idle_host('late') AND t.start_ns BETWEEN $first_ns AND $last_ns
    AND t.start_ns + l.shift_ns >= $from_ns AND t.start_ns + l.shift_ns < $to_ns
