/*
description = """One row per chain of kernels that repeats in the steps and might become one kernel, with what that
    would save per step. Steps are those of `steps`; times are means over the steps that match the typical one."""
[columns]
candidate = "Number of the candidate: those that can be fused come first, in order of what they save"
verdict = "YES, NO or UNKNOWN: whether the kernels can be fused and that pays"
reason = "Why the verdict is NO or UNKNOWN"
pattern = "The known pattern of the chain; NULL where none fits"
chain = "What its kernels compute, in order; kernels in brackets stay"
kernel_count = "Kernels of the chain that would become one"
per_step = "Occurrences of the chain per step"
per_layer = "Occurrences of the chain per layer; NULL where no layers repeat"
layers = "Layers of a step"
proximity_ratio = "Share of the occurrences of its first kernel that are followed by exactly this chain; 1 means always"
recurrence_ratio = "Share of the examined steps in which it occurs as often"
shapes = """same: all its kernels have the same grid and block; by place: each kernel has its own, the same in every
    occurrence; differ: neither"""
gemm_edge = "epilogue or prologue where a matrix product is one of the kernels; else NULL"
complexity = "How hard the fused kernel is to write: easy, moderate, hard"
remedy = "An existing implementation of the fused operation"
kernels_saved = "Kernels saved per step"
launches_saved = "Launch calls saved per step; 0 where a graph launches them all"
host_low_ns = """Host time saved per step, at least: the launch calls alone, minus 7 of them for the new kernel's in a
    PyTorch program, unless one PyTorch operation does it all"""
host_high_ns = """Host time saved per step, at most: from each launch call that goes away to what follows it, with the
    new one as cheap as the cheapest"""
gap_ns = "Time between its kernels, per step"
kernel_low_ns = """GPU time saved per step, at least: the fixed cost of kernels and two of three passes over memory at
    each joint"""
kernel_high_ns = "GPU time saved per step, at most: all but a sixth of the longest kernel, or the fixed cost of one"
chain_ns = "GPU time of its kernels, per step"
saved_low_ns = """Wall time saved per step, at least: the step replayed with the chain fused; below 0 where the step may
    become slower"""
saved_high_ns = "Wall time saved per step, at most"
is_chosen = "Whether the chain is one of the candidates that can all be fused together: no kernel is in two of them"
*/
-- A query that needs the table fills it: see nsys_insight/facts/fusion.
FROM facts.fusions;
