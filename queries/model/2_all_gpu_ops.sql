CREATE VIEW all_gpu_ops AS
WITH ops AS (
    SELECT start, "end", deviceId, globalPid FROM whole.CUPTI_ACTIVITY_KIND_KERNEL
    UNION ALL
    SELECT start, "end", deviceId, globalPid FROM whole.CUPTI_ACTIVITY_KIND_MEMCPY
    UNION ALL
    SELECT start, "end", deviceId, globalPid FROM whole.CUPTI_ACTIVITY_KIND_MEMSET
    UNION ALL
    SELECT start, "end", deviceId, globalPid FROM whole.CUPTI_ACTIVITY_KIND_GRAPH_TRACE
)
SELECT start AS start_ns, "end" AS end_ns, deviceId AS device_id, pid_of(globalPid) AS process_id
FROM ops;

COMMENT ON VIEW all_gpu_ops IS 'When GPUs ran kernels, copies, memsets and whole graphs in the whole trace, whatever the scope: what else ran while a sample was taken.';
COMMENT ON COLUMN all_gpu_ops.start_ns IS 'When the operation started on the GPU';
COMMENT ON COLUMN all_gpu_ops.end_ns IS 'When it ended';
COMMENT ON COLUMN all_gpu_ops.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN all_gpu_ops.process_id IS 'Operating system''s process id';
