-- The operations of the stream in their order, or those of a window in its middle. done_ns is the GPU time of an
-- operation and all before it.
CREATE OR REPLACE TABLE internal.step_stream AS
SELECT
    row_number() OVER (ORDER BY start_ns, end_ns, token, correlation_id) AS pos,
    token, kind, start_ns, end_ns, duration_ns, correlation_id,
    sum(duration_ns) OVER (
        ORDER BY start_ns, end_ns, token, correlation_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )::BIGINT AS done_ns
FROM internal.step_ops
WHERE start_ns >= coalesce($from_ns, start_ns) AND start_ns <= coalesce($to_ns, start_ns)
