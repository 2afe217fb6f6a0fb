-- When the host called for each NCCL kernel of a rank: its launch call, or that of the graph.
SELECT w.start_ns, min(a.start_ns) AS called_ns, any_value(a.duration_ns ORDER BY a.start_ns) AS call_ns
FROM (
    SELECT start_ns, correlation_id FROM _gpu_work
    WHERE process_id = $process AND gpu_id = $gpu
        AND name_id IN (SELECT name_id FROM kernel_names WHERE provenance = 'NCCL')
) AS w
JOIN (SELECT start_ns, duration_ns, correlation_id FROM api_calls WHERE process_id = $process) AS a
    USING (correlation_id)
GROUP BY w.start_ns
