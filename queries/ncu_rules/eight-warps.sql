/*
title = "Eight warps with register pressure"
severity = "warning"
evidence = ["registers_per_thread", "warps_per_block_ratio", "theoretical_occupancy_pct"]

[actions]
triton = "Try num_warps = 4."

[ncu_rules]
TheoreticalOccupancy = "registers"

[params]
registers = [64, "Registers per thread from which they limit occupancy: common practice"]
critical = [128, "Registers per thread from which warps-and-registers applies"]
warps = [8, "Warps per block: common practice"]
*/
SELECT launch, registers_per_thread, warps_per_block_ratio, theoretical_occupancy_pct
FROM ncu_kernels
WHERE registers_per_thread >= $registers AND registers_per_thread < $critical AND warps_per_block_ratio >= $warps
ORDER BY launch
