/*
title = "Let a thread have the registers that it needs, or keep less alive"
effort = "low"
rules = ["spills"]
gain = """
Traffic of local memory goes, and the waiting for it, until the next unit is busy all the time. Twice the registers are taken
as needed."""
*/
SELECT
    launch,
    stall_memory_pct * local_pct / 100 AS waiting_pct,
    100 - greatest(l1_passes_pct * (1 - local_pct / 100), l2_pct * (1 - local_pct / 100), compute_pct) AS most_pct,
    least(registers_per_thread, 255 - registers_per_thread) AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
