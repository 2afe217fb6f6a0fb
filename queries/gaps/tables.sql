-- What the views `longest_gaps`, `gap_operations` and `gap_activity` read.
CREATE OR REPLACE TABLE listed_gaps (
    gap_id BIGINT, gpu_id BIGINT, start_ns BIGINT, end_ns BIGINT, duration_ns BIGINT, reached_ns BIGINT, next_ns BIGINT,
    idle_ns BIGINT
);

CREATE OR REPLACE TABLE listed_operations (
    gpu_id BIGINT, start_ns BIGINT, end_ns BIGINT, process_id BIGINT, correlation_id BIGINT, name VARCHAR
);

CREATE OR REPLACE TABLE listed_activity (
    kind VARCHAR, start_ns BIGINT, end_ns BIGINT, name_id BIGINT, process_id BIGINT, thread_id BIGINT, correlation_id BIGINT
);
