/*
title = "Reuse more of a tile: a larger one, or more of it per warp"
effort = "high"
rules = ["compute-hmma", "cutlass-compute-bound", "small-tile"]
gain = "Tensor cores compute all the time. Assumes half as many registers again."
*/
SELECT
    launch,
    0 AS waiting_pct,
    100 - greatest(compute_pct, dram_pct) AS max_pct,
    least(registers_per_thread // 2, 255 - registers_per_thread) AS more_registers,
    CASE WHEN uses_shared THEN shared_bytes ELSE 0 END AS more_shared_bytes
FROM _ncu_roofs()
WHERE compute_pct IS NOT NULL
