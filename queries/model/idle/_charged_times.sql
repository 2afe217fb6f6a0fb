/*
description = "The rows of `_idle_time` that are in gaps of `_charged_gaps`."
stored = true
[columns]
gpu_id = "The machine's GPU where the trace says which, else the CUDA device number"
start_ns = "When the GPU became idle"
end_ns = "When the next operation started"
thread = """Thread that launched it: its process id times 16,777,216, and its thread id; NULL where the launch call is
    not in the trace"""
call_ns = "When the thread that launched it entered the launch call"
returned_ns = "When the call returned"
is_copy = "Whether the call is a blocking copy"
host = """late; or why the host was not: same launch call, launched before, launch call in progress, managed memory
    (pages moved without a call), blocking copies (the call is a copy into pageable host memory, and was in progress),
    not in the trace, before the first operation, after the last operation; or profiler, which blocked the thread"""
sync_ns = "For a late gap, how long its thread was in calls that wait, before the launch call"
copy_ns = "How long in copies that block"
alloc_ns = "How long in calls that allocate or free memory"
mpi_ns = "How long in MPI calls"
api_ns = "How long in all other CUDA calls"
gap_ns = "start_ns before any cut"
gap_end_ns = "end_ns before any cut"
*/
-- This is a statement of its own. If a larger statement uses these rows, DuckDB 1.5.5 does not restrict the scan of all
-- gaps to these few, which takes ten times as long.
WITH gaps AS MATERIALIZED (
    FROM _charged_gaps
),
-- The profiler cuts a gap where it blocked the thread. Each piece after the first one is such a time, or follows one.
profiler_times AS MATERIALIZED (
    SELECT p.gpu_id, p.start_ns, p.end_ns
    FROM (FROM _idle_time WHERE host = 'profiler') AS p
    ASOF JOIN gaps AS g ON g.gpu_id = p.gpu_id AND g.gap_start_ns <= p.start_ns
    WHERE p.start_ns < g.gap_end_ns
),
piece_starts AS MATERIALIZED (
    SELECT gpu_id, gap_start_ns AS start_ns FROM gaps
    UNION ALL
    SELECT gpu_id, unnest([start_ns, end_ns]) FROM profiler_times
)
SELECT
    gpu_id, start_ns, end_ns, thread, call_ns, returned_ns, is_copy, host, sync_ns, copy_ns, alloc_ns, mpi_ns, api_ns,
    start_ns AS gap_ns, end_ns AS gap_end_ns
FROM _idle_time SEMI JOIN piece_starts USING (gpu_id, start_ns);
