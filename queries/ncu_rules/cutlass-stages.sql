/*
title = "Many stages leave shared memory for few blocks"
severity = "warning"
evidence = ["occupancy_limit", "name_stages", "shared_per_block_bytes", "blocks_per_sm", "sm_pct"]

[actions]
cutlass = "Use fewer stages: 3 hide memory latency nearly as well and leave room for another block."

[params]
stages = [3, "Stages above which shared memory limits occupancy: common practice"]
ceiling = [80.0,
    "SM throughput, in % of the peak, above which low occupancy costs nothing: the limit at which optimization stops"]
*/
SELECT launch, occupancy_limit, name_stages, shared_per_block_bytes, blocks_per_sm, sm_pct
FROM ncu_kernels
WHERE list_contains(string_split(occupancy_limit, ' and '), 'shared memory') AND name_stages > $stages
    AND sm_pct <= $ceiling
ORDER BY launch
