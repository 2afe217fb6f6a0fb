CREATE VIEW graph_launches AS
SELECT
    start AS start_ns,
    "end" AS end_ns,
    duration(start, "end") AS duration_ns,
    graphId AS graph_id,
    graphExecId AS graph_exec_id,
    deviceId AS device_id,
    streamId AS stream_id,
    contextId AS context_id,
    pid_of(globalPid) AS process_id,
    correlationId AS correlation_id
FROM raw.CUPTI_ACTIVITY_KIND_GRAPH_TRACE;

COMMENT ON VIEW graph_launches IS
    'One row per CUDA graph that ran as a whole (--cuda-graph-trace=graph, nsys''s default): its kernels are not in '
    'the trace. With =node this is empty and `kernels` has them.';
COMMENT ON COLUMN graph_launches.start_ns IS 'When the graph''s first node started on the GPU';
COMMENT ON COLUMN graph_launches.end_ns IS 'When its last node ended';
COMMENT ON COLUMN graph_launches.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN graph_launches.graph_id IS 'The graph';
COMMENT ON COLUMN graph_launches.graph_exec_id IS 'Its instantiation';
COMMENT ON COLUMN graph_launches.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN graph_launches.stream_id IS 'CUDA stream that it was launched into';
COMMENT ON COLUMN graph_launches.context_id IS 'CUDA context';
COMMENT ON COLUMN graph_launches.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN graph_launches.correlation_id IS 'Joins with `api_calls` (cudaGraphLaunch), together with process_id';
