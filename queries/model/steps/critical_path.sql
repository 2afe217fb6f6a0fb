CREATE VIEW critical_path AS
FROM facts.critical_path;

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
