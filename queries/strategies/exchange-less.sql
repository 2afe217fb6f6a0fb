/*
title = "Give a thread more elements, and exchange by shuffles"
effort = "medium"
rules = ["stall-barrier", "exchange-overhead"]
gain = "Barriers and shared memory traffic go away, until DRAM, L2 or arithmetic is busy all the time."
*/
SELECT
    launch,
    stall_exchange_pct AS waiting_pct,
    100 - greatest(l2_pct, dram_pct, compute_pct) AS max_pct,
    8 AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
