/*
description = """The idle time of each GPU by cause: with `used_gpus.busy_ns` it adds up to the wall time, to the
    nanosecond. A gap is attributed to the operation that ends it. If its launch call had returned before the gap, the
    operation was launched in time and waited on the GPU: dependency. If that call was in progress when the gap began,
    the cause is launch, or copy if it is a copy into pageable host memory. Otherwise the host was late, and each
    nanosecond is attributed to what the launching thread did then."""
stored = true
[columns]
cause = """profiler: it blocked the thread, whatever else the thread was in; sync: in a sync call; copy: in a blocking
    copy (a copy into pageable memory blocks even if its name says Async); allocation: in an allocation or a free;
    launch: the host was late for any other reason; dependency; start-up and end: before the GPU's first operation or
    after its last one; unknown: the launch call is not in the trace"""
host = """launch: CPU work (no CUDA or MPI call), MPI calls, API calls (other than those named), launch call, launch
    call in progress (when the GPU became idle), launch latency (from the call's return to the start on the GPU),
    managed memory (until pages of unified memory were moved without a call, because the host touched them); sync: sync
    calls; copy: blocking copies, staged copy (between GPUs, through the host); dependency: same launch call (of a CUDA
    graph), launched before, stream wait (after the launch, for an event); start-up and end: before the first operation,
    after the last operation"""
idle_ns = "How long"
*/
WITH times AS NOT MATERIALIZED (
    FROM _idle_time
),
-- Read twice, and not materialized: it would be as large as all gaps.
pieces AS NOT MATERIALIZED (
    SELECT
        gpu_id, start_ns, end_ns, call_ns, returned_ns, is_copy, host, sync_ns, copy_ns, alloc_ns, mpi_ns, api_ns,
        gap_ns, gap_end_ns, 0 AS window_ns
    FROM in_scope('times')
),
gaps AS NOT MATERIALIZED (
    FROM pieces WHERE start_ns = gap_ns AND end_ns = gap_end_ns
),
cut_pieces AS MATERIALIZED (
    FROM pieces WHERE start_ns <> gap_ns OR end_ns <> gap_end_ns
)
SELECT gpu_id, cause, host::VARCHAR AS host, idle_ns
FROM _idle_of('gaps', 'cut_pieces');
