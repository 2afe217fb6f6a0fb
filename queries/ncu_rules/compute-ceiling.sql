/*
title = "The SM is near its ceiling"
evidence = ["sm_pct", "tensor_pct", "fma_pct", "alu_pct", "xu_pct", "fp64_pct", "issue_pct", "lsu_pct"]

[actions]
native = """
Near the peak of the busiest pipe: only another algorithm or another pipe (tensor cores, a narrower type) does
better."""
cutlass = "Near the peak: accept it, or use a narrower type (fp8, int8)."
triton = "Near the peak: accept it, or use a narrower type."
cute = "Near the peak: accept it, or use a narrower type."
pytorch = "Near the peak of the busiest pipe: accept it."
inductor = "Near the peak of the busiest pipe: accept it."

[params]
above = [80.0, "SM throughput at which optimization stops, in %: common practice"]
*/
-- Kernels whose busiest pipe loads and stores are left out: it counts as SM throughput, but computes nothing.
SELECT launch, sm_pct, tensor_pct, fma_pct, alu_pct, xu_pct, fp64_pct, issue_pct, lsu_pct
FROM ncu_kernels
WHERE sm_pct > $above
    AND coalesce(greatest(tensor_pct, fma_pct, alu_pct, xu_pct, fp64_pct, issue_pct) >= lsu_pct, true)
ORDER BY launch
