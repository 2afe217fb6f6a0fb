CREATE VIEW _gap_callers AS
SELECT c.process_id, c.correlation_id, s.name, s.frames
FROM facts.gap_callers AS c
JOIN facts.gap_stacks AS s USING (stack_id);

COMMENT ON VIEW _gap_callers IS
    'Where the calls were made whose operation ended one of `longest_gaps`: the rows of `call_places` for these, '
    'found without reading the chains of all other calls.';
COMMENT ON COLUMN _gap_callers.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _gap_callers.correlation_id IS 'The call''s id';
COMMENT ON COLUMN _gap_callers.name IS 'The place, as in `call_places`';
COMMENT ON COLUMN _gap_callers.frames IS 'The frames from there outwards, as in `_call_stacks`';
