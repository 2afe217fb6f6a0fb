CREATE VIEW _cpu_work AS
FROM facts.cpu_work;

COMMENT ON VIEW _cpu_work IS 'What the CPU did while the GPU waited for a thread that was outside of CUDA calls, by place; no row where the trace does not say.';
COMMENT ON COLUMN _cpu_work.counted_by IS 'activity, function, inclusive or stack: one of the four ways in which samples are counted, each with all rows';
COMMENT ON COLUMN _cpu_work.nvtx_path IS 'The NVTX ranges around it; NULL outside all';
COMMENT ON COLUMN _cpu_work.what IS 'What the thread was at';
COMMENT ON COLUMN _cpu_work.time_ns IS 'Time of it in which the GPU waited, per token of the steady steps; of the whole scope where none are found';
COMMENT ON COLUMN _cpu_work.wall_pct IS 'Share of the wall';
COMMENT ON COLUMN _cpu_work.work_pct IS 'Share of the CPU work that the GPU waited for';
COMMENT ON COLUMN _cpu_work.samples IS 'Samples that tell it; NULL where no sample is needed';
COMMENT ON COLUMN _cpu_work.function_name IS 'The function that most of them point to';
COMMENT ON COLUMN _cpu_work.off_cpu_ns IS 'Of time_ns, that in which the thread had no CPU; NULL where that was not recorded';
COMMENT ON COLUMN _cpu_work.is_told IS 'Whether what says what the thread was at, and not why that is not known';
