CREATE VIEW call_frames AS
SELECT c.of, c.chain_id, c.depth::BIGINT AS depth, f.name, f.function, f.module, f.kind
FROM facts.chain_frames AS c
JOIN facts.frames AS f USING (frame_id);

COMMENT ON VIEW call_frames IS 'The frames of call chains: of CUDA calls (--cudabacktrace), of calls of the operating system (-t osrt) and of CPU samples (--sample).';
COMMENT ON COLUMN call_frames.of IS 'api, os or sample: what chain_id is of; callchain_id of `api_calls` and `os_calls`, sample_id of `cpu_samples`';
COMMENT ON COLUMN call_frames.chain_id IS 'Id of the chain';
COMMENT ON COLUMN call_frames.depth IS '0 is the innermost frame';
COMMENT ON COLUMN call_frames.name IS 'The function with its module, an operator of PyTorch as aten::name; of a frame without symbol the module';
COMMENT ON COLUMN call_frames.function IS 'The function; NULL without symbol. In a stripped module nsys names the exported symbol before it, which may be another function';
COMMENT ON COLUMN call_frames.module IS 'File that the function is in, without its folder';
COMMENT ON COLUMN call_frames.kind IS 'Whose code it is: python, operator (at::_ops), native (at::native), entry (a function of cuBLAS, cuDNN, NCCL … that programs call), program, library, interpreter, system, runtime, driver, profiler, unknown';
