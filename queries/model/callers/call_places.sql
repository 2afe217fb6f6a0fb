/*
description = """Where each CUDA call was made. With backtraces (--cudabacktrace): by the innermost Python frame, else
    the operator (aten::, at::native::, an entry of cuBLAS, cuDNN …), else the program's own function; calls without one
    are not here. In a trace without any: by the NVTX ranges around the call and the calls of its thread before and
    after it."""
[columns]
correlation_id = "The call's id: joins with `api_calls`, together with process_id"
name = "The place"
chain_id = "Backtrace of the call: the frames are those of `call_frames` with of = 'api'; NULL without one"
*/
SELECT c.process_id, c.correlation_id, p.name, c.chain_id
FROM facts.called_from AS c
JOIN facts.call_places AS p USING (place_id);
