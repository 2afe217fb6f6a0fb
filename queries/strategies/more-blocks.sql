/*
title = "Split the work into as many blocks as there are SMs"
effort = "low"
rules = ["small-grid", "few-warps"]
gain = """
SMs without a block get one."""
*/
SELECT
    launch,
    0 AS waiting_pct,
    100.0 * (1 - blocks_count / sm_count) AS most_pct,
    0 AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
WHERE blocks_count < sm_count
