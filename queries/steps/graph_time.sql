-- The stream's GPU time in all, and in CUDA graphs.
SELECT coalesce(max(done_ns), 0), coalesce(sum(duration_ns) FILTER (kind = 'graph'), 0)::BIGINT FROM step_stream
