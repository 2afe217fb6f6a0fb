/*
description = "The operations of `_gpu_work` by what they are: time in which two kinds run counts as the lower one."
[columns]
start_ns = "When the operation started on the GPU"
end_ns = "When the operation ended; never before start_ns"
level = "0 kernels, memsets, whole graphs, and copies within a GPU's memory; 1 kernels that communicate; 2 other copies"
*/
SELECT
    gpu_id, start_ns, end_ns,
    CASE
        WHEN name_id IN (SELECT name_id FROM kernel_names WHERE family = 'comm') THEN 1
        WHEN copy_kind <> 'D2D' THEN 2
        ELSE 0
    END AS level
FROM _gpu_work;
