/*
title = "Give a thread the registers that it needs, or keep fewer values live"
effort = "low"
rules = ["spills"]
gain = """
Local memory traffic and the waiting for it go away, until the next unit is busy all the time. Assumes twice the
registers."""
*/
SELECT
    launch,
    stall_memory_pct * local_pct / 100 AS waiting_pct,
    100 - greatest(l1_passes_pct * (1 - local_pct / 100), l2_pct * (1 - local_pct / 100), compute_pct) AS max_pct,
    least(registers_per_thread, 255 - registers_per_thread) AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
