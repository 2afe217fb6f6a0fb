/*
title = "Blocks are small and occupancy is low"
severity = "warning"
evidence = ["occupancy_pct", "threads_per_block"]

[actions]
native = "Use 128 to 256 threads per block."

[params]
below = [50.0, "Achieved occupancy below which the block size matters, in %: common practice"]
threads = [128, "Threads per block below which a block is small: common practice"]
*/
SELECT launch, occupancy_pct, threads_per_block
FROM ncu_kernels
WHERE occupancy_pct < $below AND threads_per_block < $threads
ORDER BY launch
