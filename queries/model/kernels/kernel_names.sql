CREATE VIEW kernel_names AS
FROM facts.kernel_names;

COMMENT ON VIEW kernel_names IS
    'One row per distinct kernel name, with what it does and where it comes from, by its name (queries/catalog).';
COMMENT ON COLUMN kernel_names.name_id IS 'Id of the name, as in `kernels`';
COMMENT ON COLUMN kernel_names.name IS 'The demangled name';
COMMENT ON COLUMN kernel_names.family IS
    'gemm, attention, norm, rope, activation, elementwise, reduction, copy/cast, gather/scatter, sort/topk, '
    'softmax, embedding, comm, quantise, memory, other';
COMMENT ON COLUMN kernel_names.provenance IS
    'cuBLAS, cuDNN, CUTLASS, CuTe, Triton, Inductor, FlashAttention, NCCL, CUB/Thrust, PyTorch native, hand-written';
