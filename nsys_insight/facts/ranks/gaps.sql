-- The gaps of a rank, each with the thread that launched the operation at its end.
CREATE OR REPLACE TABLE internal.rank_threads AS
SELECT g.gap, g.start_ns, g.end_ns, any_value(a.thread_id) AS thread_id
FROM internal.rank_gaps AS g
JOIN (SELECT start_ns, correlation_id FROM _gpu_work WHERE process_id = $process AND gpu_id = $gpu) AS w
    ON w.start_ns = g.end_ns
JOIN (SELECT thread_id, correlation_id FROM api_calls WHERE process_id = $process) AS a USING (correlation_id)
GROUP BY ALL
