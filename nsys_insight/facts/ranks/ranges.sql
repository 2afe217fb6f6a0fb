-- The time that the launching threads spent in NVTX ranges during the gaps, by name, shortest ranges first.
SELECT n.name, sum(least(n.end_ns, g.end_ns) - greatest(n.start_ns, g.start_ns))::BIGINT AS time_ns
FROM (FROM nvtx_ranges WHERE process_id = $process AND end_ns IS NOT NULL AND name <> '') AS n
JOIN internal.rank_threads AS g ON n.thread_id = g.thread_id AND n.start_ns < g.end_ns AND n.end_ns > g.start_ns
GROUP BY n.name
ORDER BY avg(n.duration_ns), n.name
