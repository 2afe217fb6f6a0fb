/*
title = "Many registers and many warps"
severity = "critical"
evidence = ["registers_per_thread", "warps_per_block_ratio", "theoretical_occupancy_pct"]

[actions]
triton = "Set num_warps to 4, or 2: with this many registers hardly any block fits. Narrow the autotune list to these."
cute = "Use 128 to 256 threads per CTA."

[ncu_rules]
TheoreticalOccupancy = "registers"

[params]
registers = [128, "Registers per thread: common practice"]
warps = [8, "Warps per block: common practice"]
*/
SELECT launch, registers_per_thread, warps_per_block_ratio, theoretical_occupancy_pct
FROM ncu_kernels
WHERE registers_per_thread >= $registers AND warps_per_block_ratio >= $warps
ORDER BY launch
