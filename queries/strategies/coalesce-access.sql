/*
title = "Coalesce global access"
effort = "medium"
rules = ["uncoalesced-loads", "uncoalesced-stores"]
gain = """
Unused bytes of sectors no longer pass L2, and each request passes L1 once, until the next unit is busy all the time."""
*/
SELECT
    launch,
    -- Where no unit is busy, warps wait for latencies, which depend little on the bytes.
    CASE
        WHEN greatest(l1_passes_pct, l2_pct, dram_pct) >= 10 THEN stall_memory_pct * unused_pct / 100 ELSE 0
    END AS waiting_pct,
    100 - greatest(
        l1_passes_pct * (1 - scattered_pct / 100), l2_pct * (1 - unused_pct / 100), compute_pct, issue_pct
    ) AS max_pct,
    0 AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
