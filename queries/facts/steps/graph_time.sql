-- The stream's GPU time in all, and in CUDA graphs.
SELECT
    coalesce(max(done_ns), 0) AS total_ns,
    coalesce(sum(duration_ns) FILTER (kind = 'graph'), 0)::BIGINT AS graph_ns
FROM internal.step_stream
