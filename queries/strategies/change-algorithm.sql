/*
title = "Change the algorithm: implicit GEMM, split-Q"
effort = "high"
rules = ["change-algorithm"]
gain = "Until arithmetic is busy all the time: how much a change saves is unknown in advance."
*/
SELECT
    launch,
    0 AS waiting_pct,
    100 - greatest(compute_pct, dram_pct) AS max_pct,
    0 AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
WHERE compute_pct IS NOT NULL
