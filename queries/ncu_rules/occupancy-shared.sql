/*
title = "Shared memory limits occupancy"
severity = "warning"
evidence = ["theoretical_occupancy_pct", "occupancy_limit", "shared_per_block_bytes", "blocks_per_sm", "sm_pct"]

[actions]
native = """
Use less shared memory per block: a smaller tile, one buffer fewer, narrower types; or set the carve-out
(cudaFuncAttributePreferredSharedMemoryCarveout) to the maximum."""
cutlass = "Use a smaller threadblock tile or fewer stages: shared memory is tile x stages."
triton = "Lower num_stages by one: each stage holds one tile of each operand."
cute = "Use fewer threads per CTA or smaller staging buffers."

[ncu_rules]
TheoreticalOccupancy = "shared"

[params]
native_below = [50.0, "Occupancy of CUDA C++ below which it is worth raising, in %: common practice"]
below = [40.0, "The same for CUTLASS, Triton and CuTe: common practice"]
ceiling = [80.0,
    "SM throughput, in % of the peak, above which low occupancy costs nothing: the limit at which optimization stops"]
*/
SELECT launch, theoretical_occupancy_pct, occupancy_limit, shared_per_block_bytes, blocks_per_sm, sm_pct
FROM ncu_kernels
WHERE list_contains(string_split(occupancy_limit, ' and '), 'shared memory')
    AND theoretical_occupancy_pct < CASE implementation WHEN 'native' THEN $native_below ELSE $below END
    AND sm_pct <= $ceiling
ORDER BY launch
