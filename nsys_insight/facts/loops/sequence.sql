-- What a process put on its GPUs, and its calls that wait, in any order. `token` is equal for equal operations: kernels
-- of one name, copies of one direction and about one size, graphs of the same kernels. What one graph launch runs is
-- one operation. All waits are equal: how many there are in a row depends on the runtime. A function that runs on the
-- host after operations stands for a wait: it tells the host that they are done. Migrations of unified memory are left
-- out: the driver starts them, not the program. `shape` is a number of up to 31 bits for name and grid. A wait takes no
-- GPU time. Operations of different devices are different: work that goes to two devices in turn is one iteration.
-- Operations with a launch call of their own are not copied to a table.
CREATE OR REPLACE TABLE internal.loop_others AS
WITH uncalled_operations AS (
    -- Without a launch call in the trace, it was launched before the next operation that has one.
    SELECT o.*, least(o.start_ns, n.call_ns) AS host_ns
    FROM (FROM internal.step_launched WHERE call_ns IS NULL) AS o
    ASOF LEFT JOIN (
        SELECT start_ns, call_ns
        FROM internal.step_launched
        WHERE call_ns IS NOT NULL
            AND start_ns >= (SELECT min(start_ns) FROM internal.step_launched WHERE call_ns IS NULL)
    ) AS n ON o.start_ns <= n.start_ns
),
nodes AS (
    SELECT
        hash('graph', count(*), sum(hash(name_id, kind) % 1000003), min(device_id)) AS token,
        (sum(hash(kind, name_id, grid) % 1000003) % 2147483647)::BIGINT AS shape, correlation_id,
        min(device_id) AS device_id, min(stream_id) AS stream_id,
        min(coalesce(call_ns, start_ns)) AS host_ns, min(start_ns) AS start_ns, max(end_ns) AS end_ns,
        sum(end_ns - start_ns)::BIGINT AS gpu_ns
    FROM internal.step_launched
    WHERE kind <> 'graph' AND call_group = 'graph launch'
    GROUP BY correlation_id
),
-- A program that instantiates a graph for each launch gives each a new id. If most launches are the only one of their
-- graph, all of these are equal.
graph_ids AS (
    SELECT
        start_ns, correlation_id,
        CASE
            WHEN launches > 1 OR count(*) OVER () < 4 OR 2 * sum((launches = 1)::BIGINT) OVER () <= count(*) OVER ()
                THEN graph_id
        END AS graph_id
    FROM (
        SELECT start_ns, correlation_id, graph_id, count(*) OVER (PARTITION BY graph_id) AS launches
        FROM graph_launches WHERE process_id = $process
    )
),
graphs AS (
    SELECT
        hash('graph', g.graph_id, o.device_id) AS token, o.device_id, o.stream_id,
        coalesce(o.call_ns, o.start_ns) AS host_ns,
        o.start_ns, o.end_ns
    FROM internal.step_launched AS o
    LEFT JOIN graph_ids AS g USING (start_ns, correlation_id)
    WHERE o.kind = 'graph'
)
SELECT
    hash(kind, name_id, floor(log2(greatest(size_bytes, 1)) / 3), device_id) AS token,
    (hash(kind, name_id, grid) % 2147483647)::BIGINT AS shape, kind::VARCHAR AS kind, name_id, device_id, stream_id,
    kind = 'D2H' AND size_bytes > 1 AS is_result, host_ns, start_ns, end_ns, end_ns - start_ns AS gpu_ns
FROM uncalled_operations
WHERE kind <> 'graph' AND is_migration IS NOT TRUE
UNION ALL
SELECT token, shape, 'graph', NULL, device_id, stream_id, false, host_ns, start_ns, end_ns, gpu_ns
FROM nodes
UNION ALL
SELECT
    token, (token % 2147483647)::BIGINT, 'graph', NULL, device_id, stream_id, false, host_ns, start_ns, end_ns,
    end_ns - start_ns
FROM graphs
UNION ALL
SELECT hash('wait'), 0, name, NULL, NULL, NULL, false, start_ns, start_ns, end_ns, 0
FROM api_calls
WHERE process_id = $process AND (call_group = 'sync' OR runs_on_host(name));

CREATE OR REPLACE VIEW internal.loop_sequence AS
SELECT
    hash(kind, name_id, floor(log2(greatest(size_bytes, 1)) / 3), device_id) AS token,
    (hash(kind, name_id, grid) % 2147483647)::BIGINT AS shape, kind::VARCHAR AS kind, name_id, device_id, stream_id,
    -- A byte is the answer to a question of a library or of the program, no result.
    kind = 'D2H' AND size_bytes > 1 AS is_result, call_ns AS host_ns, start_ns, end_ns, end_ns - start_ns AS gpu_ns
FROM internal.step_launched
WHERE call_ns IS NOT NULL AND kind <> 'graph' AND call_group IS DISTINCT FROM 'graph launch'
    AND is_migration IS NOT TRUE
UNION ALL
FROM internal.loop_others
