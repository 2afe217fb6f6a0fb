/*
description = """Where the calls were made whose operation ended one of `longest_gaps`: the rows of `call_places` for
    these, found without reading the chains of all other calls."""
[columns]
correlation_id = "The call's id"
name = "The place, as in `call_places`"
frames = "The frames from there outwards, as in `_call_stacks`"
*/
SELECT c.process_id, c.correlation_id, s.name, s.frames
FROM facts.gap_callers AS c
JOIN facts.gap_stacks AS s USING (stack_id);
