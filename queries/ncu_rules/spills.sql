/*
title = "Registers spill to local memory"
severity = "warning"
evidence = ["spill_sectors_count", "registers_per_thread"]

[actions]
native = """
Keep fewer values live per thread: less unrolling, a smaller tile; loosen __launch_bounds__ or --maxrregcount (which
is per file). Arrays with an index unknown at compile time live in local memory too."""
cutlass = "Use a smaller warp tile."
triton = "Use a smaller BLOCK_M/N/K, or more warps."
cute = "Give a thread fewer elements."
inductor = "Let the compiler tile smaller: coordinate_descent_tuning, or split the fused region."

[ncu_rules]
LocalMemory = ""
Spill = ""

[params]
above = [0, "Sectors of local memory traffic: any are too many (common practice)"]
*/
SELECT launch, spill_sectors_count, registers_per_thread
FROM ncu_kernels
WHERE spill_sectors_count > $above
ORDER BY launch
