-- API calls of the threads that were late, as far as they lie between two times, on the line of `internal.idle_lanes`, and
-- what each does: 0 waits, 1 copies, 2 allocates, 3 all else. A call may be inside another one. No join for the names: DuckDB
-- would hash all calls to find them.
SELECT
    greatest(a.start_ns, l.from_ns) + l.shift_ns AS line_start, least(a.end_ns, l.to_ns) + l.shift_ns AS line_end,
    CASE
        WHEN a.correlation_id << 24 | a.process_id IN (FROM internal.idle_reads) THEN 1
        WHEN a.name_id IN (SELECT name_id FROM internal.idle_hosts WHERE host = 0) THEN 0
        WHEN a.name_id IN (SELECT name_id FROM internal.idle_hosts WHERE host = 1) THEN 1
        WHEN a.name_id IN (SELECT name_id FROM internal.idle_hosts WHERE host = 2) THEN 2
        ELSE 3
    END::UTINYINT AS host
FROM (FROM _host_activity WHERE kind = 'api' AND end_ns > start_ns AND end_ns > $from_ns AND start_ns < $to_ns) AS a
JOIN internal.idle_lanes AS l ON l.thread = a.process_id << 24 | a.thread_id
WHERE a.end_ns > l.from_ns AND a.start_ns < l.to_ns
