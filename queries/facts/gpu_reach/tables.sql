-- The operations on GPUs in order, each with the latest end of those before it; `is_same_call`: as the one before.
CREATE TABLE IF NOT EXISTS facts.gpu_reach (
    gpu_id INTEGER, start_ns BIGINT, end_ns BIGINT, running_end_ns BIGINT, call BIGINT, is_same_call BOOLEAN
);
