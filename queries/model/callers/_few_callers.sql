CREATE VIEW _few_callers AS
SELECT c.process_id, c.correlation_id, s.name, s.frames
FROM facts.few_callers AS c
JOIN facts.few_stacks AS s USING (stack_id);

COMMENT ON VIEW _few_callers IS
    'Where the CUDA calls that wait, or that allocate, free, copy or set memory, and the launches of graphs were '
    'made: of `call_places` what is asked of these, without a look at the chains of all others.';
COMMENT ON COLUMN _few_callers.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _few_callers.correlation_id IS 'The call''s id';
COMMENT ON COLUMN _few_callers.name IS 'The place, as in `call_places`';
COMMENT ON COLUMN _few_callers.frames IS 'The frames from there outwards, as in `_call_stacks`';
