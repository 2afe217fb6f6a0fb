/*
description = """One row per distinct kernel name, with what it does and where it comes from, by its name
    (queries/catalog)."""
stored = true
[columns]
name_id = "Id of the name, as in `kernels`"
name = "The demangled name"
family = """gemm, attention, norm, rope, activation, elementwise, reduction, copy/cast, gather/scatter, sort/topk,
    softmax, embedding, comm, quantise, memory, other"""
provenance = """The library or compiler: cuBLAS, cuDNN, cuSPARSE, cuFFT, cuSOLVER, CUTLASS, CuTe, Triton, Inductor,
    FlashAttention, NCCL, CUB/Thrust, PyTorch native …; hand-written: none that the catalog knows"""
*/
SELECT
    s.name_id,
    s.name,
    kernel_family(s.name) AS family,
    kernel_provenance(s.name) AS provenance
FROM strings AS s
WHERE s.name_id IN (SELECT DISTINCT demangledName FROM raw.CUPTI_ACTIVITY_KIND_KERNEL);
