/*
progress = "ranks"
is_cross_rank = true
*/
-- Which rank each process of each trace is, or a trace as a whole that ran nothing of NCCL: all traces together.
CREATE TABLE IF NOT EXISTS facts.rank_numbers (
    trace VARCHAR, process_id BIGINT, device_id BIGINT, rank BIGINT, told_by VARCHAR
);
