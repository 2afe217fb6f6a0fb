CREATE VIEW _levelled_work AS
SELECT
    gpu_id, start_ns, end_ns,
    CASE
        WHEN name_id IN (SELECT name_id FROM kernel_names WHERE family = 'comm') THEN 1
        WHEN copy_kind <> 'D2D' THEN 2
        ELSE 0
    END AS level
FROM _gpu_work;

COMMENT ON VIEW _levelled_work IS
    'The operations of `_gpu_work` by what they are: time in which two kinds run counts as the lower one.';
COMMENT ON COLUMN _levelled_work.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _levelled_work.start_ns IS 'When the operation started on the GPU';
COMMENT ON COLUMN _levelled_work.end_ns IS 'When it ended; never before its start';
COMMENT ON COLUMN _levelled_work.level IS
    '0 kernels, memsets, whole graphs, and copies within a GPU''s memory; 1 kernels that communicate; 2 other copies';
