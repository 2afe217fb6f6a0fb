-- One row per kernel: the kernels of a graph launch share one call. The join holds millions of calls in memory, so it
-- carries only their times and the id of their name.
CREATE VIEW launches AS
SELECT
    k.start_ns, k.end_ns, k.duration_ns, k.name_id, k.device_id, k.stream_id, k.process_id, k.correlation_id,
    k.graph_node_id,
    n.name AS api_name,
    n.call_group,
    tid_of(a.globalTid) AS thread_id,
    a.start AS api_start_ns,
    a."end" AS api_end_ns,
    duration(a.start, a."end") AS api_duration_ns,
    k.start_ns - a."end" AS queue_ns
FROM kernel_events AS k
LEFT JOIN (
    SELECT start, "end", globalTid, correlationId, nameId
    FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME
    WHERE eventClass IS DISTINCT FROM 67
        AND nameId IN (SELECT name_id FROM _api_names WHERE call_group IN ('launch', 'graph launch'))
) AS a ON pid_of(a.globalTid) = k.process_id AND a.correlationId = k.correlation_id
LEFT JOIN _api_names AS n ON n.name_id = a.nameId;

COMMENT ON VIEW launches IS
    'One row per kernel, with the API call that launched it; the call''s columns are NULL when the capture does not '
    'have it.';
COMMENT ON COLUMN launches.start_ns IS 'When the kernel started on the GPU';
COMMENT ON COLUMN launches.end_ns IS 'When the kernel ended on the GPU';
COMMENT ON COLUMN launches.duration_ns IS 'The kernel''s time';
COMMENT ON COLUMN launches.name_id IS 'The kernel''s name, in `strings` and `kernel_names`';
COMMENT ON COLUMN launches.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN launches.stream_id IS 'CUDA stream, numbered by CUPTI';
COMMENT ON COLUMN launches.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN launches.correlation_id IS 'Id that joins kernel and call, within the process';
COMMENT ON COLUMN launches.graph_node_id IS 'CUDA graph node that ran the kernel; NULL or 0 outside graphs';
COMMENT ON COLUMN launches.api_name IS 'The launch call';
COMMENT ON COLUMN launches.call_group IS 'launch, or graph launch: one call for many kernels';
COMMENT ON COLUMN launches.thread_id IS 'Thread that called';
COMMENT ON COLUMN launches.api_start_ns IS 'When the call was entered';
COMMENT ON COLUMN launches.api_end_ns IS 'When it returned';
COMMENT ON COLUMN launches.api_duration_ns IS 'How long it took the host; 0 where it ends before it starts';
COMMENT ON COLUMN launches.queue_ns IS
    'Kernel start - call end: negative when the kernel started before the call had returned';
