-- Steps that consist of several repetitions each. The last repetition of a step is the longer one.
CREATE OR REPLACE TABLE internal.step_pieces AS
SELECT
    row_number() OVER (ORDER BY min(start_ns)) - 1 AS piece,
    min(unit) > 0 AND count(*) = $repetitions AS is_step,
    any_value(process_id) AS process_id,
    arg_min(thread_id, unit) AS thread_id,
    min(host_start_ns) AS host_start_ns, max(host_end_ns) AS host_end_ns, min(start_ns) AS start_ns,
    max(end_ns) AS end_ns,
    bool_or(is_open) AS is_open, sum(ops)::BIGINT AS ops, sum(gpu_ns)::BIGINT AS gpu_ns
FROM internal.step_units
GROUP BY unit > 0, coalesce(step, 0)
