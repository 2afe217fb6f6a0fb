/*
title = "Repeated reads come from L2, not from L1"
severity = "warning"
evidence = ["l1_hit_pct", "l2_hit_pct", "dram_pct", "bound", "load_sectors_per_request_ratio"]

[actions]
native = "Tile in shared memory: load what the block shares once, and read it from there."

[ncu_rules]
UncoalescedGlobalAccess = ""

[params]
below = [20.0, "L1 hits below which L1 does not help, in %: common practice"]
dram = [70.0, "DRAM throughput above which DRAM is the bound and no cache changes it, in %: common practice"]
l2 = [50.0, "L2 hits that show that data are read again, in %: common practice"]
*/
SELECT launch, l1_hit_pct, l2_hit_pct, dram_pct, bound, load_sectors_per_request_ratio
FROM ncu_kernels
WHERE l1_hit_pct < $below AND bound = 'memory' AND dram_pct <= $dram AND l2_hit_pct >= $l2
    AND load_sectors_per_request_ratio IS NOT NULL
ORDER BY launch
