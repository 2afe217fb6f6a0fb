/* topic = "gpu" */
-- A fact of its own, because DuckDB materializes what one statement reads twice.
CREATE TABLE IF NOT EXISTS facts.other_work (
    gpu_id BIGINT, start_ns BIGINT, end_ns BIGINT, level INTEGER
);

INSERT INTO facts.other_work BY NAME
SELECT gpu_id, start_ns, end_ns, level
FROM _levelled_work
WHERE level > 0;

COMMENT ON VIEW _other_work IS
    'The operations that do not compute, of which there are few: kernels that communicate, and copies but those '
    'within a GPU''s memory.';
COMMENT ON COLUMN _other_work.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _other_work.start_ns IS 'When the operation started on the GPU';
COMMENT ON COLUMN _other_work.end_ns IS 'When it ended; never before its start';
COMMENT ON COLUMN _other_work.level IS 'As in `_levelled_work`';
