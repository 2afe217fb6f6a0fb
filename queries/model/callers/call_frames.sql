/*
description = """The frames of call chains: of CUDA calls (--cudabacktrace), of operating system calls (-t osrt) and of
    CPU samples (--sample)."""
[columns]
of = """api, os or sample: what chain_id is of; callchain_id of `api_calls`; for operating system calls and samples, the
    id that nsys gives their chain"""
chain_id = "Id of the chain"
depth = "0 is the innermost frame"
name = "The function with its module, a PyTorch operator as aten::name; for a frame without a symbol, the module"
function = """The function; NULL without a symbol. In a stripped module nsys names the exported symbol before it, which
    may be another function"""
module = "File that the function is in, without its folder"
kind = """Whose code it is: python, operator (at::_ops), native (at::native), entry (a function of cuBLAS, cuDNN, NCCL …
    that programs call), program, library, interpreter, system, runtime, driver, profiler, unknown"""
*/
SELECT 'api' AS of, c.chain_id, c.depth::BIGINT AS depth, f.name, f.function, f.module, f.kind
FROM _api_chains AS c
JOIN _api_frames AS f USING (frame_id)
UNION ALL
SELECT c.of::VARCHAR, c.chain_id, c.depth::BIGINT, f.name, f.function, f.module, f.kind
FROM facts.cpu_chains AS c
JOIN facts.cpu_frames AS f USING (frame_id);
