/*
description = """Where the CUDA calls were made that wait, launch graphs, or allocate, free, copy or set memory: the
    rows of `call_places` for these, found without reading the chains of all other calls."""
[columns]
correlation_id = "The call's id"
name = "The place, as in `call_places`"
frames = "The frames from there outwards, as in `_call_stacks`"
*/
SELECT c.process_id, c.correlation_id, s.name, s.frames
FROM facts.sync_callers AS c
JOIN facts.sync_stacks AS s USING (stack_id);
