/*
title = "Block slots limit occupancy"
severity = "warning"
evidence = ["theoretical_occupancy_pct", "occupancy_limit", "threads_per_block", "blocks_per_sm"]

[actions]
native = "An SM is out of block slots before it is full: make blocks larger, 128 to 256 threads."
cute = "An SM is out of block slots before it is full: give a CTA more threads."
triton = "An SM is out of block slots before it is full: raise num_warps or BLOCK."

[params]
below = [50.0, "Occupancy below which it is worth raising, in %: common practice"]
*/
SELECT launch, theoretical_occupancy_pct, occupancy_limit, threads_per_block, blocks_per_sm
FROM ncu_kernels
WHERE list_contains(string_split(occupancy_limit, ' and '), 'blocks') AND theoretical_occupancy_pct < $below
ORDER BY launch
