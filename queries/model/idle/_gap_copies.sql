CREATE VIEW _gap_copies AS
FROM facts.listed_copies;

COMMENT ON VIEW _gap_copies IS
    'The calls in `_gap_activity` that return only when their copy is done: those of `_blocking_copies`.';
COMMENT ON COLUMN _gap_copies.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _gap_copies.correlation_id IS 'Joins with `_gap_activity`, together with process_id';
