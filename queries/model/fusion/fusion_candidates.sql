-- The table is filled when a query needs it: see nsys_insight/facts/fusion/candidates.py.
CREATE VIEW fusion_candidates AS
FROM facts.fusions;

COMMENT ON VIEW fusion_candidates IS 'One row per chain of kernels that comes back in the steps and might be one kernel, with what that would save in a step. Steps are those of `steps`; times are means over the steps that are like the typical one.';
COMMENT ON COLUMN fusion_candidates.candidate IS 'Rank: those that can be fused first, each by what they save';
COMMENT ON COLUMN fusion_candidates.verdict IS 'YES, NO or UNKNOWN: whether the kernels can be fused and it pays';
COMMENT ON COLUMN fusion_candidates.reason IS 'Why not, or why nobody knows';
COMMENT ON COLUMN fusion_candidates.pattern IS 'What the chain is known as; NULL for none that is known';
COMMENT ON COLUMN fusion_candidates.chain IS 'What its kernels compute, in order; those in brackets stay';
COMMENT ON COLUMN fusion_candidates.kernel_count IS 'Kernels of the chain that would be one';
COMMENT ON COLUMN fusion_candidates.per_step IS 'How often it comes in a step';
COMMENT ON COLUMN fusion_candidates.per_layer IS 'How often it comes in a layer; NULL where no layers repeat';
COMMENT ON COLUMN fusion_candidates.layers IS 'Layers of a step';
COMMENT ON COLUMN fusion_candidates.proximity_ratio IS 'How often its first kernel is followed by exactly this chain; 1 is always';
COMMENT ON COLUMN fusion_candidates.recurrence_ratio IS 'Share of the steps looked at that have it as often';
COMMENT ON COLUMN fusion_candidates.shapes IS 'Whether all its kernels have the same grid and block (same), each its own whenever it comes (by place), or not (differ)';
COMMENT ON COLUMN fusion_candidates.gemm_edge IS 'epilogue or prologue where a matrix product is one of the kernels; else NULL';
COMMENT ON COLUMN fusion_candidates.complexity IS 'How hard the fused kernel is to write: easy, moderate, hard';
COMMENT ON COLUMN fusion_candidates.remedy IS 'What does it today';
COMMENT ON COLUMN fusion_candidates.kernels_saved IS 'Kernels fewer in a step';
COMMENT ON COLUMN fusion_candidates.launches_saved IS 'Launch calls fewer in a step; 0 where a graph launches them all';
COMMENT ON COLUMN fusion_candidates.host_low_ns IS 'Host time saved in a step at least: the launch calls alone, less 7 of them for the new kernel''s in a PyTorch program, unless an operation of PyTorch does it all';
COMMENT ON COLUMN fusion_candidates.host_high_ns IS 'Host time saved in a step at most: from each launch call that goes to what follows it, and the new one as cheap as the cheapest';
COMMENT ON COLUMN fusion_candidates.gap_ns IS 'Time between its kernels in a step';
COMMENT ON COLUMN fusion_candidates.kernel_low_ns IS 'GPU time saved in a step at least: the fixed cost of kernels and two of three passes over memory at each joint';
COMMENT ON COLUMN fusion_candidates.kernel_high_ns IS 'GPU time saved in a step at most: all but a sixth of the longest kernel, or the fixed cost of one';
COMMENT ON COLUMN fusion_candidates.chain_ns IS 'GPU time of its kernels in a step';
COMMENT ON COLUMN fusion_candidates.saved_low_ns IS 'Wall time saved in a step at least: the step played again with the chain fused; below 0 where it may be lost';
COMMENT ON COLUMN fusion_candidates.saved_high_ns IS 'Wall time saved in a step at most';
COMMENT ON COLUMN fusion_candidates.is_chosen IS 'Whether it is one of those that can be fused together: no kernel is in two of them';
COMMENT ON COLUMN fusion_candidates.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN fusion_candidates.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN fusion_candidates.stream_id IS 'CUDA stream, numbered by CUPTI';
