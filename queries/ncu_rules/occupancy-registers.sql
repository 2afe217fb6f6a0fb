/*
title = "Registers limit occupancy"
severity = "warning"
evidence = ["theoretical_occupancy_pct", "occupancy_limit", "registers_per_thread", "blocks_per_sm", "sm_pct"]

[actions]
native = """
Bound the registers: __launch_bounds__(threads, blocks per SM), fewer values alive at once, smaller unrolling. Stop
where spills begin; 60% occupancy is usually enough."""
cutlass = "Take a smaller warp shape: the accumulators of a warp's tile are what fills the registers."
triton = """
Take fewer warps (num_warps) or a smaller BLOCK: registers per thread follow from the tile divided by the threads."""
cute = "Give a thread fewer elements (elems_per_thread) or a CTA fewer threads (threads_per_cta)."

[ncu_rules]
TheoreticalOccupancy = "registers"
AchievedOccupancy = ""

[params]
native_below = [50.0, "Occupancy of CUDA C++ below which it is worth raising, in %: common practice"]
below = [40.0, "The same for CUTLASS, Triton and CuTe, whose tiles need registers: common practice"]
ceiling = [80.0,
    "SM throughput, in % of the peak, above which low occupancy costs nothing: the limit at which optimization stops"]
*/
SELECT launch, theoretical_occupancy_pct, occupancy_limit, registers_per_thread, blocks_per_sm, sm_pct
FROM ncu_kernels
WHERE list_contains(string_split(occupancy_limit, ' and '), 'registers')
    AND theoretical_occupancy_pct < CASE implementation WHEN 'native' THEN $native_below ELSE $below END
    AND sm_pct <= $ceiling
ORDER BY launch
