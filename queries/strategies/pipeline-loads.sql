/*
title = "Copy asynchronously (cp.async, TMA) into a second buffer"
effort = "medium"
rules = ["pipeline-loads", "stall-long-scoreboard"]
gain = """
At most the waiting for memory goes away. It doubles the shared memory, and pays off where there are fewer than 20
multiply-adds per load: common practice."""
*/
SELECT
    launch,
    0 AS waiting_pct,
    least(stall_memory_pct, 100 - greatest(l1_passes_pct, l2_pct, dram_pct, compute_pct, issue_pct)) AS max_pct,
    0 AS more_registers,
    shared_bytes AS more_shared_bytes
FROM _ncu_roofs()
WHERE uses_shared AND compute_major >= 8 AND fma_per_load_ratio BETWEEN 1 AND 20
