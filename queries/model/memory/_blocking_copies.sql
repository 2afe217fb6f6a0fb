CREATE VIEW _blocking_copies AS
FROM facts.blocking_copies;

COMMENT ON VIEW _blocking_copies IS
    'The API calls that return only when their copy is done, including those that a scope leaves out: copies from '
    'or to host memory that are not asynchronous by name, and all copies into pageable memory.';
COMMENT ON COLUMN _blocking_copies.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _blocking_copies.correlation_id IS
    'Joins with `_host_activity` and `_gpu_work`, together with process_id';
COMMENT ON COLUMN _blocking_copies.is_read IS
    'Whether it copied from a GPU into pageable memory: such a call returns after the copy, even if its name says '
    'Async';
