/*
title = "Bound by integer tensor operations"
evidence = ["bound", "tensor_int_pct"]

[actions]
native = "Look at the stall codes in the SASS: IMMA S04 can often be S02 (15 to 20% measured)."

[params]
above = [40.0, "Tensor pipe utilization from which it bounds the kernel, in %"]
*/
SELECT launch, bound, tensor_int_pct
FROM ncu_kernels
WHERE bound = 'compute' AND tensor_int_pct > $above
ORDER BY launch
