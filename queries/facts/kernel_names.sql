/* topic = "kernels" */
CREATE TABLE IF NOT EXISTS facts.kernel_names (
    name_id BIGINT, name VARCHAR, family VARCHAR, provenance VARCHAR
);

INSERT INTO facts.kernel_names BY NAME
SELECT
    s.name_id,
    s.name,
    kernel_family(s.name) AS family,
    kernel_provenance(s.name) AS provenance
FROM strings AS s
WHERE s.name_id IN (SELECT DISTINCT name_id FROM kernel_events);

COMMENT ON VIEW kernel_names IS
    'One row per distinct kernel name, with what it does and where it comes from, by its name (queries/catalog).';
COMMENT ON COLUMN kernel_names.name_id IS 'Id of the name, as in `kernels`';
COMMENT ON COLUMN kernel_names.name IS 'The demangled name';
COMMENT ON COLUMN kernel_names.family IS
    'gemm, attention, norm, rope, activation, elementwise, reduction, copy/cast, gather/scatter, sort/topk, '
    'softmax, embedding, comm, quantise, memory, other';
COMMENT ON COLUMN kernel_names.provenance IS
    'cuBLAS, cuDNN, CUTLASS, CuTe, Triton, Inductor, FlashAttention, NCCL, CUB/Thrust, PyTorch native, hand-written';
