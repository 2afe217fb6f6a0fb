-- The time budget of each rank in each step.
SELECT step, rank, start_ns, wall_ns, busy_ns, waiting_ns, transfer_ns, idle_ns, late_ns
FROM rank_steps
ORDER BY step, rank
