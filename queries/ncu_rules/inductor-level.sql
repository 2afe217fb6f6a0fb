/*
title = "Tune at the PyTorch level"
evidence = ["duration_ns", "bound", "sm_pct", "memory_pct"]

[actions]
inductor = """
torch.compile wrote this kernel: mode='max-autotune', coordinate_descent_tuning, shapes and layouts of the inputs;
or rewrite it by hand."""
*/
SELECT launch, duration_ns, bound, sm_pct, memory_pct
FROM ncu_kernels
WHERE duration_ns > 0
ORDER BY launch
