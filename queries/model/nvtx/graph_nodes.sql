/*
description = """One row per node of a CUDA graph: where it was captured or added; only with --cuda-graph-trace=node,
    and if the capture of the graph is in the trace."""
[columns]
graph_node_id = "The node: joins with `kernels`, `memcpys` and `memsets`"
captured_ns = "When the node was captured or added to its graph"
thread_id = "Thread that did it"
correlation_id = """The API call that was captured or that added it: joins with `api_calls` and `call_places`, where its
    call stack is"""
range_id = "The innermost NVTX range that was open then, as in `nvtx_nesting`; NULL outside all ranges"
range_name = "Name of that range"
nvtx_path = "The names of the ranges around it, from the top down, joined by /"
*/
-- Instantiating a graph clones its nodes, so a node's origin is found clone by clone. Up to 2023 its events are in
-- CUDA_GRAPH_EVENTS.
WITH RECURSIVE node_events AS (
    SELECT pid_of(globalTid) AS process_id, graphNodeId AS node_id, originalGraphNodeId AS original_id, start, globalTid
    FROM raw.CUDA_GRAPH_NODE_EVENTS
    UNION ALL
    SELECT pid_of(globalTid), graphNodeId, originalGraphNodeId, start, globalTid
    FROM raw.CUDA_GRAPH_EVENTS WHERE graphNodeId IS NOT NULL
),
origins AS (
    SELECT process_id, node_id, node_id AS origin_id FROM node_events
    UNION
    SELECT o.process_id, o.node_id, e.original_id
    FROM origins AS o JOIN node_events AS e ON e.process_id = o.process_id AND e.node_id = o.origin_id
    WHERE e.original_id IS NOT NULL
),
captured_nodes AS (
    SELECT
        o.process_id, o.node_id AS graph_node_id, min(e.start) AS captured_ns,
        tid_of(arg_min(e.globalTid, e.start)) AS thread_id
    FROM origins AS o
    JOIN node_events AS e ON e.process_id = o.process_id AND e.node_id = o.origin_id AND e.original_id IS NULL
    GROUP BY o.process_id, o.node_id
)
SELECT
    n.process_id, n.graph_node_id, n.captured_ns, n.thread_id,
    CASE WHEN a.end_ns >= n.captured_ns THEN a.correlation_id END AS correlation_id,
    p.range_id, r.name AS range_name, t.path AS nvtx_path
FROM captured_nodes AS n
ASOF LEFT JOIN outer_api_calls AS a
    ON a.process_id = n.process_id AND a.thread_id = n.thread_id AND a.start_ns <= n.captured_ns
ASOF LEFT JOIN nvtx_places AS p
    ON p.process_id = n.process_id AND p.thread_id = n.thread_id AND p.start_ns <= n.captured_ns
-- A join copies its texts for each range, and paths are long: so it reads their numbers.
LEFT JOIN facts.nested_ranges AS r ON r.range_id = p.range_id
LEFT JOIN facts.nvtx_paths AS t ON t.path_id = r.path_id;
