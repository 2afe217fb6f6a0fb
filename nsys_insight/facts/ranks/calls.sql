-- The time that the launching threads spent in calls during the gaps, by name of the call.
SELECT a.name, sum(least(a.end_ns, g.end_ns) - greatest(a.start_ns, g.start_ns))::BIGINT AS time_ns
FROM (FROM api_calls WHERE process_id = $process) AS a
JOIN internal.rank_threads AS g ON a.thread_id = g.thread_id AND a.start_ns < g.end_ns AND a.end_ns > g.start_ns
GROUP BY a.name
ORDER BY time_ns DESC, a.name
