CREATE VIEW call_places AS
SELECT c.process_id, c.correlation_id, p.name, c.chain_id
FROM facts.called_from AS c
JOIN facts.call_places AS p USING (place_id);

COMMENT ON VIEW call_places IS
    'Where each CUDA call was made. With backtraces (--cudabacktrace): by the innermost Python frame, else the '
    'operator (aten::, at::native::, an entry of cuBLAS, cuDNN …), else the program''s own function; calls without '
    'one are not here. In a trace without any: by the NVTX ranges around the call and the calls of its thread '
    'before and after it.';
COMMENT ON COLUMN call_places.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN call_places.correlation_id IS 'The call''s id: joins with `api_calls`, together with process_id';
COMMENT ON COLUMN call_places.name IS 'The place';
COMMENT ON COLUMN call_places.chain_id IS
    'Its backtrace: the frames are those of `call_frames` with of = ''api''; NULL without one';
