/* topic = "gpu" */
-- The work of a process that communicates on its GPU, other than NCCL kernels.
CREATE TABLE IF NOT EXISTS facts.rank_work (process_id BIGINT, gpu_id BIGINT, start_ns BIGINT, end_ns BIGINT);

INSERT INTO facts.rank_work BY NAME
SELECT process_id, gpu_id, start_ns, end_ns
FROM _gpu_work
WHERE end_ns > start_ns
    AND (name_id IS NULL OR name_id NOT IN (SELECT name_id FROM kernel_names WHERE provenance = 'NCCL'))
    AND (process_id, gpu_id) IN (SELECT process_id, gpu_id FROM _rank_collectives)

COMMENT ON VIEW _rank_work IS 'What a process that communicates ran on its GPU other than NCCL kernels.';
COMMENT ON COLUMN _rank_work.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _rank_work.gpu_id IS 'The GPU';
COMMENT ON COLUMN _rank_work.start_ns IS 'When it began on the GPU';
COMMENT ON COLUMN _rank_work.end_ns IS 'When it ended';
