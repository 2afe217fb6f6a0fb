/*
title = "A library kernel: a baseline, nothing to tune inside"
evidence = ["duration_ns", "bound", "sm_pct", "memory_pct"]

[actions]
library = """
Choose how you call it: data type, layout, alignment, batch; fuse around it. Use it as the baseline for a kernel of
your own."""
*/
SELECT launch, duration_ns, bound, sm_pct, memory_pct
FROM ncu_kernels
WHERE duration_ns > 0
ORDER BY launch
