/*
topic = "ranks"
progress = "ranks"
is_cross_rank = true
*/
-- The rank of each process, or of a trace without NCCL kernels, over all traces.
CREATE TABLE IF NOT EXISTS facts.rank_numbers (
    trace VARCHAR, process_id BIGINT, device_id BIGINT, rank BIGINT, told_by VARCHAR
);

COMMENT ON VIEW _rank_numbers IS
    'One row per rank: a process on a GPU with NCCL kernels; and one per trace that has none but is known to be a '
    'rank.';
COMMENT ON COLUMN _rank_numbers.trace IS 'The trace, where there are several';
COMMENT ON COLUMN _rank_numbers.process_id IS 'Operating system''s process id; NULL for a trace without NCCL kernels';
COMMENT ON COLUMN _rank_numbers.device_id IS
    'CUDA device number within the process; NULL for a trace without NCCL kernels';
COMMENT ON COLUMN _rank_numbers.rank IS 'Its number, as in `ranks`';
COMMENT ON COLUMN _rank_numbers.told_by IS 'Where the number comes from, as in `rank_run`';
