-- Empty table: no steps are found yet.
CREATE OR REPLACE TABLE internal.step_pieces (
    piece BIGINT, is_step BOOLEAN, process_id BIGINT, thread_id BIGINT, host_start_ns BIGINT, host_end_ns BIGINT,
    start_ns BIGINT, end_ns BIGINT, is_open BOOLEAN, ops BIGINT, gpu_ns BIGINT
)
