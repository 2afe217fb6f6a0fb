CREATE VIEW _rank_work AS
FROM facts.rank_work;

COMMENT ON VIEW _rank_work IS 'What a process that communicates ran on its GPU other than NCCL kernels.';
COMMENT ON COLUMN _rank_work.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _rank_work.gpu_id IS 'The GPU';
COMMENT ON COLUMN _rank_work.start_ns IS 'When it began on the GPU';
COMMENT ON COLUMN _rank_work.end_ns IS 'When it ended';
