/*
description = "The GPU work of nodes of CUDA graphs, at the instants at which they were captured."
[columns]
thread = "The thread, as thread_of gives it"
start_ns = "When the nodes of the graph were captured"
gpu_ns = "Sum of the durations of the work of these nodes, over all launches"
kernels = "Number of kernels"
*/
SELECT
    thread_of(n.thread_id, n.process_id) AS thread, n.captured_ns AS start_ns, sum(o.duration_ns)::BIGINT AS gpu_ns,
    count(*) FILTER (o.kind = 'kernel') AS kernels
FROM (FROM gpu_ops WHERE graph_node_id > 0) AS o JOIN graph_nodes AS n USING (process_id, graph_node_id)
GROUP BY ALL;
