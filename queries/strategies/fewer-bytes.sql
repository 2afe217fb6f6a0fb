/*
title = "Move fewer bytes: fuse the kernel with its neighbors, or halve the precision"
effort = "high"
rules = ["dram-ceiling", "l2-misses"]
gain = """
At half the bytes, DRAM needs half the time, if nothing else is busy. nsys-insight fusion shows what fusing saves."""
*/
SELECT
    launch,
    0 AS waiting_pct,
    100 - greatest(l1_passes_pct / 2, l2_pct / 2, dram_pct / 2, compute_pct, issue_pct) AS max_pct,
    0 AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
WHERE dram_pct >= 60
