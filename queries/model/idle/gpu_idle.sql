CREATE VIEW gpu_idle AS
WITH times AS (
    FROM _idle_time
),
pieces AS (
    SELECT
        gpu_id, start_ns, end_ns, call_ns, returned_ns, is_copy, host, sync_ns, copy_ns, alloc_ns, api_ns, gap_ns, gap_end_ns, 0 AS window_ns
    FROM in_scope('times')
),
cut AS (
    FROM pieces WHERE start_ns <> gap_ns OR end_ns <> gap_end_ns
)
SELECT gpu_id, cause, host, idle_ns
FROM _idle_of('pieces', 'cut');

COMMENT ON VIEW gpu_idle IS 'What the idle time of each GPU is owed to: with `used_gpus.busy_ns` it adds up to the wall, to the nanosecond. A gap is put down to the operation that ends it. If its launch call began before the gap, the operation was launched in time and waited on the GPU: dependency; but if that call is a copy into pageable memory of the host, which was still under way, the host was blocked in it. Else the host was late, and each nanosecond is what the launching thread did then.';
COMMENT ON COLUMN gpu_idle.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN gpu_idle.cause IS 'profiler: it held the thread up, whatever else the thread was in; blocked: in a sync call or a blocking copy, as one into pageable memory is whatever its name says; allocation: in an allocation or a free; starved: late for any other reason; dependency; edge: before the GPU''s first operation or after its last one; unknown: the launch call is not in the trace';
COMMENT ON COLUMN gpu_idle.host IS 'starved: CPU work (no CUDA call), API calls (others than those named), launch call, launch latency (from the call''s return to the start on the GPU), managed memory (until pages of unified memory were moved, for which there was no call: the host touched them); blocked: sync calls, blocking copies; dependency: same launch call (of a CUDA graph), launched before, launch call under way; edge: before the first operation, after the last operation';
COMMENT ON COLUMN gpu_idle.idle_ns IS 'How long';
