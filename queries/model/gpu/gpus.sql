CREATE VIEW gpus AS
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

COMMENT ON VIEW gpus IS 'The machine''s GPUs, including those that the program did not use.';
COMMENT ON COLUMN gpus.gpu_id IS 'The machine''s number of the GPU';
COMMENT ON COLUMN gpus.name IS 'Product name';
COMMENT ON COLUMN gpus.chip IS 'Chip name';
COMMENT ON COLUMN gpus.pci_bus IS 'PCI location';
COMMENT ON COLUMN gpus.sm_count IS 'Streaming multiprocessors';
COMMENT ON COLUMN gpus.clock_hz IS 'Maximum SM clock';
COMMENT ON COLUMN gpus.memory_bytes_per_s IS 'Peak bandwidth of the device memory';
COMMENT ON COLUMN gpus.memory_bytes IS 'Device memory';
COMMENT ON COLUMN gpus.l2_bytes IS 'L2 cache';
COMMENT ON COLUMN gpus.warp_size IS 'Threads in a warp';
COMMENT ON COLUMN gpus.warps_per_sm IS 'Most resident warps of an SM';
COMMENT ON COLUMN gpus.blocks_per_sm IS 'Most resident blocks of an SM';
COMMENT ON COLUMN gpus.registers_per_sm IS '32-bit registers of an SM';
COMMENT ON COLUMN gpus.registers_per_block IS 'Most 32-bit registers of a block';
COMMENT ON COLUMN gpus.shared_per_sm_bytes IS 'Shared memory of an SM';
COMMENT ON COLUMN gpus.shared_per_block_bytes IS 'Most shared memory of a block without opting in';
COMMENT ON COLUMN gpus.shared_per_block_optin_bytes IS 'Most shared memory of a block that opts in';
COMMENT ON COLUMN gpus.threads_per_block IS 'Most threads of a block';
COMMENT ON COLUMN gpus.compute_capability IS 'Compute capability, major.minor';
