-- All work of the process in scope as one step.
CREATE OR REPLACE TABLE internal.step_pieces AS
SELECT
    0::BIGINT AS piece, true AS is_step, $process::BIGINT AS process_id, NULL::BIGINT AS thread_id,
    -9223372036854775807 AS host_start_ns, 9223372036854775807 AS host_end_ns,
    min(start_ns) AS start_ns, max(end_ns) AS end_ns, false AS is_open, NULL::BIGINT AS ops, NULL::BIGINT AS gpu_ns
FROM wall
HAVING count(*) > 0
