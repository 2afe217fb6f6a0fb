/*
title = "A library kernel: a baseline, nothing to tune inside"
severity = "info"
evidence = ["duration_ns", "bound", "sm_pct", "memory_pct"]

[actions]
library = """
Choose what is asked of it: data type, layout, alignment, batch; fuse around it. Take it as the mark for a kernel of
your own."""
*/
SELECT launch, duration_ns, bound, sm_pct, memory_pct
FROM ncu_kernels
WHERE duration_ns > 0
ORDER BY launch
