CREATE VIEW processes AS
SELECT DISTINCT coalesce(pid_of(globalPid), pid) AS process_id, name
FROM raw.PROCESSES;

COMMENT ON VIEW processes IS 'Processes that nsys saw, including those that did not use CUDA.';
COMMENT ON COLUMN processes.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN processes.name IS 'Name of the executable';
