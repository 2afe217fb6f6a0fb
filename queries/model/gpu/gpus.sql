/*
description = "The machine's GPUs, including those that the program did not use."
[columns]
gpu_id = "The machine's number of the GPU"
name = "Product name"
chip = "Chip name"
pci_bus = "PCI location"
sm_count = "Streaming multiprocessors"
clock_hz = "Maximum SM clock"
memory_bytes_per_s = "Peak bandwidth of the device memory"
memory_bytes = "Device memory"
l2_bytes = "L2 cache"
warp_size = "Threads in a warp"
warps_per_sm = "Most resident warps of an SM"
blocks_per_sm = "Most resident blocks of an SM"
registers_per_sm = "32-bit registers of an SM"
registers_per_block = "Most 32-bit registers of a block"
shared_per_sm_bytes = "Shared memory of an SM"
shared_per_block_bytes = "Most shared memory of a block without opting in"
shared_per_block_optin_bytes = "Most shared memory of a block that opts in"
threads_per_block = "Most threads of a block"
compute_capability = "Compute capability, major.minor"
*/
SELECT
    id AS gpu_id, name, chipName AS chip, busLocation AS pci_bus,
    smCount AS sm_count, clockRate AS clock_hz, memoryBandwidth AS memory_bytes_per_s, totalMemory AS memory_bytes,
    l2CacheSize AS l2_bytes, threadsPerWarp AS warp_size, maxWarpsPerSm AS warps_per_sm,
    nullif(maxBlocksPerSm, 0) AS blocks_per_sm,
    maxRegistersPerSm AS registers_per_sm, maxRegistersPerBlock AS registers_per_block,
    maxShmemPerSm AS shared_per_sm_bytes, maxShmemPerBlock AS shared_per_block_bytes,
    maxShmemPerBlockOptin AS shared_per_block_optin_bytes, maxThreadsPerBlock AS threads_per_block,
    computeMajor || '.' || computeMinor AS compute_capability
FROM raw.TARGET_INFO_GPU
UNION ALL
SELECT DISTINCT
    deviceId, name, NULL, pciBusId,
    numMultiprocessors, coreClockRate, globalMemoryBandwidth, globalMemorySize,
    l2CacheSize, numThreadsPerWarp, maxWarpsPerMultiprocessor, maxBlocksPerMultiprocessor,
    maxRegistersPerMultiprocessor, maxRegistersPerBlock,
    maxSharedMemoryPerMultiprocessor, maxSharedMemoryPerBlock, NULL, maxThreadsPerBlock,
    computeCapabilityMajor || '.' || computeCapabilityMinor
FROM raw.TARGET_INFO_CUDA_GPU;
