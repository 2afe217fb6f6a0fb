/* progress = "CPU time" */
-- What the CPU did while a GPU waited for a thread that was outside of CUDA calls. `facts.cpu_pieces`: that time in
-- pieces, which do not overlap for a GPU. os_call_id is the name of the operating system call that the thread was in,
-- range_id the innermost NVTX range. `facts.gap_samples`: the samples of the thread in these pieces.
CREATE TABLE IF NOT EXISTS facts.cpu_pieces (
    gpu_id INTEGER, thread BIGINT, gap_ns BIGINT, start_ns BIGINT, end_ns BIGINT, os_call_id BIGINT, is_off BOOLEAN,
    range_id BIGINT
);

CREATE TABLE IF NOT EXISTS facts.gap_samples (
    gpu_id INTEGER, thread BIGINT, start_ns BIGINT, sample_id BIGINT, os_call_id BIGINT, range_id BIGINT
);
