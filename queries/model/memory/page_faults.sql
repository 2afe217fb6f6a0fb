CREATE VIEW page_faults AS
SELECT
    'GPU' AS side, start AS start_ns, "end" AS end_ns, duration(start, "end") AS duration_ns,
    coalesce(numberOfPageFaults, 1) AS faults,
    address, deviceId AS device_id, pid_of(globalPid) AS process_id
FROM raw.CUDA_UM_GPU_PAGE_FAULT_EVENTS
UNION ALL
SELECT 'CPU', start, NULL, NULL, 1, address, NULL, pid_of(globalPid)
FROM raw.CUDA_UM_CPU_PAGE_FAULT_EVENTS;

COMMENT ON VIEW page_faults IS
    'Page faults of unified memory: one row per group of GPU page faults, or per CPU page fault. Recorded with '
    '--cuda-um-gpu-page-faults=true and --cuda-um-cpu-page-faults=true.';
COMMENT ON COLUMN page_faults.side IS 'What touched memory that was not there: GPU or CPU';
COMMENT ON COLUMN page_faults.start_ns IS 'When the fault happened';
COMMENT ON COLUMN page_faults.end_ns IS 'When the GPU''s faults were handled; NULL for CPU page faults';
COMMENT ON COLUMN page_faults.duration_ns IS 'end_ns - start_ns';
COMMENT ON COLUMN page_faults.faults IS 'How many';
COMMENT ON COLUMN page_faults.address IS 'Where in memory';
COMMENT ON COLUMN page_faults.device_id IS 'CUDA device number within the process; NULL for CPU page faults';
COMMENT ON COLUMN page_faults.process_id IS 'Operating system''s process id';
