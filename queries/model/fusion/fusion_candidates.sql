-- A query that needs the table fills it: see nsys_insight/facts/fusion.
CREATE VIEW fusion_candidates AS
FROM facts.fusions;

COMMENT ON VIEW fusion_candidates IS
    'One row per chain of kernels that repeats in the steps and might become one kernel, with what that would save '
    'per step. Steps are those of `steps`; times are means over the steps that match the typical one.';
COMMENT ON COLUMN fusion_candidates.candidate IS
    'Number of the candidate: those that can be fused come first, in order of what they save';
COMMENT ON COLUMN fusion_candidates.verdict IS 'YES, NO or UNKNOWN: whether the kernels can be fused and that pays';
COMMENT ON COLUMN fusion_candidates.reason IS 'Why the verdict is NO or UNKNOWN';
COMMENT ON COLUMN fusion_candidates.pattern IS 'The known pattern of the chain; NULL where none fits';
COMMENT ON COLUMN fusion_candidates.chain IS 'What its kernels compute, in order; kernels in brackets stay';
COMMENT ON COLUMN fusion_candidates.kernel_count IS 'Kernels of the chain that would become one';
COMMENT ON COLUMN fusion_candidates.per_step IS 'How often it occurs in a step';
COMMENT ON COLUMN fusion_candidates.per_layer IS 'How often it occurs in a layer; NULL where no layers repeat';
COMMENT ON COLUMN fusion_candidates.layers IS 'Layers of a step';
COMMENT ON COLUMN fusion_candidates.proximity_ratio IS
    'Share of the occurrences of its first kernel that are followed by exactly this chain; 1 means always';
COMMENT ON COLUMN fusion_candidates.recurrence_ratio IS 'Share of the examined steps in which it occurs as often';
COMMENT ON COLUMN fusion_candidates.shapes IS
    'same: all its kernels have the same grid and block; by place: each kernel has its own, the same in every '
    'occurrence; differ: neither';
COMMENT ON COLUMN fusion_candidates.gemm_edge IS
    'epilogue or prologue where a matrix product is one of the kernels; else NULL';
COMMENT ON COLUMN fusion_candidates.complexity IS 'How hard the fused kernel is to write: easy, moderate, hard';
COMMENT ON COLUMN fusion_candidates.remedy IS 'An existing implementation of the fused operation';
COMMENT ON COLUMN fusion_candidates.kernels_saved IS 'Kernels saved per step';
COMMENT ON COLUMN fusion_candidates.launches_saved IS 'Launch calls saved per step; 0 where a graph launches them all';
COMMENT ON COLUMN fusion_candidates.host_low_ns IS
    'Host time saved per step, at least: the launch calls alone, minus 7 of them for the new kernel''s in a PyTorch '
    'program, unless one PyTorch operation does it all';
COMMENT ON COLUMN fusion_candidates.host_high_ns IS
    'Host time saved per step, at most: from each launch call that goes away to what follows it, with the new one '
    'as cheap as the cheapest';
COMMENT ON COLUMN fusion_candidates.gap_ns IS 'Time between its kernels, per step';
COMMENT ON COLUMN fusion_candidates.kernel_low_ns IS
    'GPU time saved per step, at least: the fixed cost of kernels and two of three passes over memory at each joint';
COMMENT ON COLUMN fusion_candidates.kernel_high_ns IS
    'GPU time saved per step, at most: all but a sixth of the longest kernel, or the fixed cost of one';
COMMENT ON COLUMN fusion_candidates.chain_ns IS 'GPU time of its kernels, per step';
COMMENT ON COLUMN fusion_candidates.saved_low_ns IS
    'Wall time saved per step, at least: the step replayed with the chain fused; below 0 where the step may become '
    'slower';
COMMENT ON COLUMN fusion_candidates.saved_high_ns IS 'Wall time saved per step, at most';
COMMENT ON COLUMN fusion_candidates.is_chosen IS
    'Whether it is one of the candidates that can all be fused together: no kernel is in two of them';
COMMENT ON COLUMN fusion_candidates.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN fusion_candidates.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN fusion_candidates.stream_id IS 'CUDA stream, numbered by CUPTI';
