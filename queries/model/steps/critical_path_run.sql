CREATE VIEW critical_path_run AS
FROM facts.critical_path_run;

COMMENT ON VIEW critical_path_run IS
    'One row: the steps whose critical path `critical_path` has, or why there is none. No row where no steps were '
    'found.';
COMMENT ON COLUMN critical_path_run.reason IS 'Why the critical path cannot be determined; NULL where it can';
COMMENT ON COLUMN critical_path_run.steps IS 'Number of consecutive steps';
COMMENT ON COLUMN critical_path_run.first_step IS 'The first of them';
COMMENT ON COLUMN critical_path_run.measured_ns IS
    'How long each took: from its first operation on the GPU to that of the next one';
COMMENT ON COLUMN critical_path_run.played_ns IS
    'How long each takes when replayed as recorded: how well savings can be estimated';
