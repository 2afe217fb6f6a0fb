/*
title = "The block size leaves warps of the SM unused"
evidence = ["theoretical_occupancy_pct", "occupancy_limit", "threads_per_block", "blocks_per_sm"]

[actions]
native = "No further block of this size fits: take smaller blocks, whose size divides the SM's threads."
cute = "No further CTA of this size fits: take fewer threads per CTA."

[params]
below = [75.0, "Occupancy at or below which a quarter of the SM is empty because no further block fits, in %"]
*/
SELECT launch, theoretical_occupancy_pct, occupancy_limit, threads_per_block, blocks_per_sm
FROM ncu_kernels
WHERE occupancy_limit = 'warps' AND theoretical_occupancy_pct <= $below
ORDER BY launch
