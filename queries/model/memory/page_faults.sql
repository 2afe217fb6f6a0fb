/*
description = """Page faults of unified memory: one row per group of GPU page faults, or per CPU page fault. Recorded
    with --cuda-um-gpu-page-faults=true and --cuda-um-cpu-page-faults=true."""
[columns]
side = "What touched memory that was not there: GPU or CPU"
start_ns = "When the fault happened"
end_ns = "When the GPU's faults were handled; NULL for CPU page faults"
duration_ns = "end_ns - start_ns"
faults = "How many"
address = "Where in memory"
device_id = "CUDA device number within the process; NULL for CPU page faults"
*/
SELECT
    'GPU' AS side, start AS start_ns, "end" AS end_ns, duration(start, "end") AS duration_ns,
    coalesce(numberOfPageFaults, 1) AS faults,
    address, deviceId AS device_id, pid_of(globalPid) AS process_id
FROM raw.CUDA_UM_GPU_PAGE_FAULT_EVENTS
UNION ALL
SELECT 'CPU', start, NULL, NULL, 1, address, NULL, pid_of(globalPid)
FROM raw.CUDA_UM_CPU_PAGE_FAULT_EVENTS;
