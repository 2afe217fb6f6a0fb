/*
title = "Split the work into as many blocks as there are SMs"
effort = "low"
rules = ["small-grid", "few-warps"]
gain = "SMs without a block get some, and the others get more, until the next unit is busy all the time."
*/
SELECT
    launch,
    0 AS waiting_pct,
    100 - greatest(l1_passes_pct, l2_pct, dram_pct, compute_pct, issue_pct) AS max_pct,
    0 AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
WHERE blocks_count < sm_count
