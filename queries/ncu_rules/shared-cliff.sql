/*
title = "One block takes more than half of the shared memory"
severity = "warning"
evidence = ["shared_per_block_bytes", "shared_per_sm_bytes", "blocks_per_sm", "sm_pct"]

[actions]
native = """
Only one block fits on an SM; with less than half of its shared memory, two would fit. Use a smaller tile, or one
buffer fewer."""
cutlass = """
Only one block fits on an SM: use a smaller tile or one stage fewer, unless the schedule is designed for one block."""
triton = "Only one program fits on an SM: a smaller BLOCK, or num_stages down by one."
cute = "Only one CTA fits on an SM: a smaller tile, or one stage fewer."

[params]
share = [50.0, "Share of the SM's shared memory above which a second block does not fit, in %"]
ceiling = [80.0,
    "SM throughput, in % of the peak, above which low occupancy costs nothing: the limit at which optimization stops"]
*/
SELECT launch, shared_per_block_bytes, shared_per_sm_bytes, blocks_per_sm, sm_pct
FROM ncu_kernels
WHERE shared_per_block_bytes > shared_per_sm_bytes * $share / 100 AND sm_pct <= $ceiling
ORDER BY launch
