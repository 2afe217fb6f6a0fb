/* options = ["min_gap_ns"] */
-- The tables behind the views `longest_gaps`, `_gap_operations`, `_gap_activity` and `_gap_copies`.
CREATE TABLE IF NOT EXISTS facts.listed_gaps (
    gap_id BIGINT, gpu_id BIGINT, start_ns BIGINT, end_ns BIGINT, duration_ns BIGINT, running_end_ns BIGINT,
    next_ns BIGINT,
    idle_ns BIGINT
);

CREATE TABLE IF NOT EXISTS facts.listed_operations (
    gpu_id BIGINT, start_ns BIGINT, end_ns BIGINT, process_id BIGINT, correlation_id BIGINT, name VARCHAR
);

CREATE TABLE IF NOT EXISTS facts.listed_activity (
    kind VARCHAR, start_ns BIGINT, end_ns BIGINT, name_id BIGINT, process_id BIGINT, thread_id BIGINT,
    correlation_id BIGINT
);

CREATE TABLE IF NOT EXISTS facts.listed_copies (
    process_id BIGINT, correlation_id BIGINT
);
