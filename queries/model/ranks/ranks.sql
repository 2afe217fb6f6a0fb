CREATE VIEW ranks AS
SELECT r.*, d.cause, d.more_busy_ns, d.more_idle_ns, d.busy_ratio, d.host, d.place, d.host_ns,
    d.others_host_ns, d.stretch_ns, d.min_stretch_ns, d.max_stretch_ns,
    d.others_stretch_ns, d.stretch_before, d.launch_call_ratio
FROM facts.ranks AS r
LEFT JOIN facts.rank_delays AS d USING (rank);

COMMENT ON VIEW ranks IS
    'One row per rank: a process on a GPU that runs NCCL kernels, or else calls MPI collectives, in one trace '
    'or in several. For late ranks, it says what makes the others wait.';
COMMENT ON COLUMN ranks.rank IS
    'Its number: from NCCL, MPI, the launcher, the file name, or else in order; the report `ranks` says which';
COMMENT ON COLUMN ranks.trace IS 'The trace, where there are several';
COMMENT ON COLUMN ranks.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN ranks.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN ranks.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN ranks.nccl_kernels IS 'NCCL kernels that it ran; without them, its MPI collectives';
COMMENT ON COLUMN ranks.nccl_ns IS 'Sum of their durations';
COMMENT ON COLUMN ranks.clock_offset_ns IS
    'How far its clock was ahead of that of the first trace, by the ends of collectives; NULL where traces do not '
    'say when they began';
COMMENT ON COLUMN ranks.clock_drift_ppm IS
    'How much faster its clock was, in parts per million; 0 where no drift can be distinguished from the error';
COMMENT ON COLUMN ranks.host_number IS
    'Its host, by the GPUs that traces list: traces that have a GPU in common are of one host; NULL where several '
    'traces list none';
COMMENT ON COLUMN ranks.gpu IS 'Product name of its GPU; NULL where the trace does not say';
COMMENT ON COLUMN ranks.cause IS
    'Why it is late: gpu (its GPU is busy longer than the others), host (its GPU is idle longer), both; NULL where '
    'it is not late, or the numbers do not say';
COMMENT ON COLUMN ranks.more_busy_ns IS
    'How much longer its GPU is busy than the others in a step in which it is late; a mean';
COMMENT ON COLUMN ranks.more_idle_ns IS 'How much longer its GPU is idle in such a step';
COMMENT ON COLUMN ranks.busy_ratio IS 'How long its GPU is busy in such steps, relative to the median of the others';
COMMENT ON COLUMN ranks.host IS
    'What its host did in the longest gaps of these steps: the name of an API call, or CPU work';
COMMENT ON COLUMN ranks.place IS 'The NVTX range in which it did so';
COMMENT ON COLUMN ranks.host_ns IS 'How long its host works in the steps in which it is late, without waits; a mean';
COMMENT ON COLUMN ranks.others_host_ns IS
    'The same of the host that works longest among the ranks that are not late; a median';
COMMENT ON COLUMN ranks.stretch_ns IS
    'The longest stretch of such a step in which its host is in no CUDA call, a mean; NULL unless it explains half '
    'of the delay';
COMMENT ON COLUMN ranks.min_stretch_ns IS 'The shortest of these stretches';
COMMENT ON COLUMN ranks.max_stretch_ns IS 'The longest of these stretches';
COMMENT ON COLUMN ranks.others_stretch_ns IS 'The same of that other host';
COMMENT ON COLUMN ranks.stretch_before IS 'What its host usually launches next: a kernel or a copy';
COMMENT ON COLUMN ranks.launch_call_ratio IS
    'How long its launch calls of collectives take, relative to those of that other host';
