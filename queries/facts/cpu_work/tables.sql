/* topic = "work" */
-- What `_cpu_work` shows.
CREATE TABLE IF NOT EXISTS facts.cpu_work (
    counted_by VARCHAR, nvtx_path VARCHAR, what VARCHAR, time_ns DOUBLE, wall_pct DOUBLE, work_pct DOUBLE,
    samples BIGINT, function_name VARCHAR,
    off_cpu_ns DOUBLE, is_told BOOLEAN
);

COMMENT ON VIEW _cpu_work IS
    'What the CPU did while the GPU waited for a thread that was outside of CUDA calls, by place; no row where the '
    'trace does not say.';
COMMENT ON COLUMN _cpu_work.counted_by IS
    'activity, function, inclusive or stack: one of the four ways in which samples are counted, each with all rows';
COMMENT ON COLUMN _cpu_work.nvtx_path IS 'The NVTX ranges around it; NULL outside all ranges';
COMMENT ON COLUMN _cpu_work.what IS 'What the thread did';
COMMENT ON COLUMN _cpu_work.time_ns IS
    'Time in which the GPU waited for it, per token of the steady steps; in total for the whole scope where no '
    'steps were found';
COMMENT ON COLUMN _cpu_work.wall_pct IS 'Share of the wall time';
COMMENT ON COLUMN _cpu_work.work_pct IS 'Share of the CPU work that the GPU waited for';
COMMENT ON COLUMN _cpu_work.samples IS 'Samples it is based on; NULL where no sample is needed';
COMMENT ON COLUMN _cpu_work.function_name IS 'The function in most of the samples';
COMMENT ON COLUMN _cpu_work.off_cpu_ns IS
    'The part of time_ns in which the thread had no CPU; NULL where that was not recorded';
COMMENT ON COLUMN _cpu_work.is_told IS 'Whether what says what the thread did, and not why that is unknown';
