CREATE VIEW _few_callers AS
SELECT c.process_id, c.correlation_id, s.name, s.frames
FROM facts.few_callers AS c
JOIN facts.few_stacks AS s USING (stack_id);

COMMENT ON VIEW _few_callers IS
    'Where the CUDA calls were made that wait, launch graphs, or allocate, free, copy or set memory: the rows of '
    '`call_places` for these, found without reading the chains of all other calls.';
COMMENT ON COLUMN _few_callers.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _few_callers.correlation_id IS 'The call''s id';
COMMENT ON COLUMN _few_callers.name IS 'The place, as in `call_places`';
COMMENT ON COLUMN _few_callers.frames IS 'The frames from there outwards, as in `_call_stacks`';
