-- What a process put on its GPUs, and its calls that wait, in the order of the host calls. `token` is equal for equal
-- operations: kernels of one name, copies of one direction and about one size, graphs of the same kernels. What one
-- graph launch runs is one operation. `shape` is a number of up to 31 bits for name and grid. A wait takes no GPU time.
CREATE OR REPLACE TABLE internal.loop_sequence AS
WITH operations AS (
    SELECT
        hash(kind, name_id, floor(log2(greatest(size_bytes, 1)) / 3)) AS token,
        (hash(kind, name_id, grid) % 2147483647)::BIGINT AS shape, kind::VARCHAR AS kind, name_id,
        coalesce(call_ns, start_ns) AS host_ns, start_ns, end_ns,
        end_ns - start_ns AS gpu_ns, kind = 'kernel' AS is_launch
    FROM internal.step_launched
    WHERE kind <> 'graph' AND call_group IS DISTINCT FROM 'graph launch'
),
nodes AS (
    SELECT
        hash('graph', count(*), sum(hash(name_id, kind) % 1000003)) AS token,
        (sum(hash(kind, name_id, grid) % 1000003) % 2147483647)::BIGINT AS shape, correlation_id,
        min(coalesce(call_ns, start_ns)) AS host_ns, min(start_ns) AS start_ns, max(end_ns) AS end_ns,
        sum(end_ns - start_ns)::BIGINT AS gpu_ns
    FROM internal.step_launched
    WHERE kind <> 'graph' AND call_group = 'graph launch'
    GROUP BY correlation_id
),
graphs AS (
    SELECT hash('graph', g.graph_id) AS token, coalesce(o.call_ns, o.start_ns) AS host_ns, o.start_ns, o.end_ns
    FROM internal.step_launched AS o
    LEFT JOIN graph_launches AS g ON g.correlation_id = o.correlation_id AND g.process_id = $process
    WHERE o.kind = 'graph'
),
all_operations AS (
    SELECT token, shape, kind, name_id, host_ns, start_ns, end_ns, gpu_ns, is_launch FROM operations
    UNION ALL
    SELECT token, shape, 'graph', NULL, host_ns, start_ns, end_ns, gpu_ns, true FROM nodes
    UNION ALL
    SELECT token, (token % 2147483647)::BIGINT, 'graph', NULL, host_ns, start_ns, end_ns, end_ns - start_ns, true
    FROM graphs
    UNION ALL
    SELECT hash('wait', name), 0, name, NULL, start_ns, start_ns, end_ns, 0, false
    FROM api_calls
    WHERE process_id = $process AND call_group = 'sync'
)
SELECT
    (row_number() OVER (ORDER BY host_ns, start_ns, end_ns, token) - 1)::BIGINT AS position,
    token, shape, kind, name_id, host_ns, start_ns, end_ns, gpu_ns, is_launch
FROM all_operations
