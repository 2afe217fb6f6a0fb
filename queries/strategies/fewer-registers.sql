/*
title = "Use fewer registers per thread, so that more blocks fit"
effort = "low"
rules = ["occupancy-registers", "eight-warps", "warps-and-registers", "few-active-warps"]
gain = """
As many blocks as everything else allows share the waiting, until the next unit is busy all the time; nothing is
saved where other warps already hide it. Assumes one more block."""
*/
SELECT
    launch,
    0 AS waiting_pct,
    least(
        100 * (1 - blocks_per_sm / blocks_without_registers),
        100 - greatest(l1_passes_pct, l2_pct, dram_pct, compute_pct, issue_pct)
    ) AS max_pct,
    next_registers - registers_per_thread AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
WHERE next_registers < registers_per_thread
