/*
topic = "steps"
progress = "the critical path"
*/
-- The critical path. The views `critical_path` and `critical_path_run` define the columns.
CREATE TABLE IF NOT EXISTS facts.critical_path (
    kind VARCHAR, name VARCHAR, nvtx_path VARCHAR, path_ns DOUBLE, total_ns DOUBLE, saved_ns DOUBLE,
    half_saved_ns DOUBLE,
    takes_over VARCHAR
);

CREATE TABLE IF NOT EXISTS facts.critical_path_run (
    reason VARCHAR, steps BIGINT, first_step BIGINT, measured_ns DOUBLE, played_ns DOUBLE
)

COMMENT ON VIEW critical_path IS
    'What the critical path of a step consists of: walking back from the first operation of one step to that of the '
    'previous step, always along what was waited for last. Covers some consecutive steady steps (see '
    '`critical_path_run`), replayed with one host thread and streams that run in order.';
COMMENT ON COLUMN critical_path.kind IS
    'CPU work, API call, launch latency (from a call to the start of its operation), kernel, copy, memset, graph, '
    'communication (NCCL kernels), between operations (of a stream, or from one stream to another), return of waits '
    '(from the end of an operation to that of the call that waits for it)';
COMMENT ON COLUMN critical_path.name IS 'The call, the kernel or the copy; NULL for the others';
COMMENT ON COLUMN critical_path.nvtx_path IS 'For CPU work, the NVTX ranges around it';
COMMENT ON COLUMN critical_path.path_ns IS 'Its time on the critical path, per step; all rows add up to the step';
COMMENT ON COLUMN critical_path.total_ns IS 'Its time per step, on the critical path or not; NULL for delays';
COMMENT ON COLUMN critical_path.saved_ns IS
    'How much shorter the step would be if it took no time: never more than path_ns, less where another path takes '
    'over. NULL for communication, and where path_ns is small';
COMMENT ON COLUMN critical_path.half_saved_ns IS 'How much shorter the step would be if it took half the time';
COMMENT ON COLUMN critical_path.takes_over IS 'What the critical path then runs through instead';

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
