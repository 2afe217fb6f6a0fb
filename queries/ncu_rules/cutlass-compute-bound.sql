/*
title = "Compute-bound with memory to spare"
evidence = ["sm_pct", "memory_pct", "name_stages"]

[actions]
cutlass = "More stages keep the tensor cores fed; after that, only a narrower type helps."

[params]
sm = [80.0, "SM throughput, in %: common practice"]
memory = [40.0, "Memory throughput, in %: common practice"]
*/
SELECT launch, sm_pct, memory_pct, name_stages
FROM ncu_kernels
WHERE sm_pct > $sm AND memory_pct < $memory
ORDER BY launch
