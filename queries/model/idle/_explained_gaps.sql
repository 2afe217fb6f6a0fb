CREATE VIEW _explained_gaps AS
FROM facts.explained_gaps;

COMMENT ON VIEW _explained_gaps IS 'The gaps of `longest_gaps`, each with its cause and its place in the program.';
COMMENT ON COLUMN _explained_gaps.gap_id IS 'As in `longest_gaps`';
COMMENT ON COLUMN _explained_gaps.start_ns IS 'When the GPU became idle';
COMMENT ON COLUMN _explained_gaps.end_ns IS 'When the next operation started';
COMMENT ON COLUMN _explained_gaps.duration_ns IS 'end_ns - start_ns';
COMMENT ON COLUMN _explained_gaps.idle_pct IS 'Share of the idle time of all gaps in scope';
COMMENT ON COLUMN _explained_gaps.cause IS 'The cause of most of it, as in `gpu_idle`';
COMMENT ON COLUMN _explained_gaps.host IS 'What the host did for most of it, as in the report gaps';
COMMENT ON COLUMN _explained_gaps.host_ns IS 'Time of the gap that host took';
COMMENT ON COLUMN _explained_gaps.before_name IS 'The operation before the gap';
COMMENT ON COLUMN _explained_gaps.after_name IS 'The operation after it';
COMMENT ON COLUMN _explained_gaps.nvtx_path IS
    'The NVTX ranges of the launching thread that hold most of the gap, or the launch call if that was before the '
    'gap; NULL outside all ranges';
COMMENT ON COLUMN _explained_gaps.gpu_id IS
    'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _explained_gaps.process_id IS 'Process that launched the operation after it';
COMMENT ON COLUMN _explained_gaps.thread_id IS 'Thread that launched it';
COMMENT ON COLUMN _explained_gaps.correlation_id IS 'Id of the call that launched it; NULL where no call launched it';
