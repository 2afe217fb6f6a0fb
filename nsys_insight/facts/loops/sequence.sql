-- What a process put on its GPUs, and its calls that wait, in the order of the host calls. `token` is equal for equal
-- operations: kernels of one name, copies of one direction and about one size, graphs of the same kernels. What one
-- graph launch runs is one operation. Copies between two launches of the same kernels are equal for any size: they may
-- carry the work of an iteration. All waits are equal: how many there are in a row depends on the runtime.
-- Migrations of unified memory are left out: the driver starts them, not the program. `shape` is a number of up to
-- 31 bits for name and grid. A wait takes no GPU time. Operations of different devices are different: work that goes to
-- two devices in turn is one iteration.
CREATE OR REPLACE TABLE internal.loop_sequence AS
WITH launched_operations AS (
    SELECT *, call_ns AS host_ns FROM internal.step_launched WHERE call_ns IS NOT NULL
    UNION ALL
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
operations AS (
    SELECT
        hash(kind, name_id, floor(log2(greatest(size_bytes, 1)) / 3), device_id) AS token,
        (hash(kind, name_id, grid) % 2147483647)::BIGINT AS shape, kind::VARCHAR AS kind, name_id, device_id, stream_id,
        -- A byte is the answer to a question of a library or of the program, no result.
        kind = 'D2H' AND size_bytes > 1 AS is_result,
        host_ns, start_ns, end_ns,
        end_ns - start_ns AS gpu_ns, kind = 'kernel' AS is_launch
    FROM launched_operations
    WHERE kind <> 'graph' AND call_group IS DISTINCT FROM 'graph launch' AND is_migration IS NOT TRUE
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
graphs AS (
    SELECT
        hash('graph', g.graph_id, o.device_id) AS token, o.device_id, o.stream_id,
        coalesce(o.call_ns, o.start_ns) AS host_ns,
        o.start_ns, o.end_ns
    FROM internal.step_launched AS o
    LEFT JOIN graph_launches AS g ON g.correlation_id = o.correlation_id AND g.process_id = $process
    WHERE o.kind = 'graph'
),
all_operations AS (
    SELECT token, shape, kind, name_id, device_id, stream_id, is_result, host_ns, start_ns, end_ns, gpu_ns, is_launch
    FROM operations
    UNION ALL
    SELECT token, shape, 'graph', NULL, device_id, stream_id, false, host_ns, start_ns, end_ns, gpu_ns, true
    FROM nodes
    UNION ALL
    SELECT
        token, (token % 2147483647)::BIGINT, 'graph', NULL, device_id, stream_id, false, host_ns, start_ns,
        end_ns, end_ns - start_ns, true
    FROM graphs
    UNION ALL
    SELECT hash('wait'), 0, name, NULL, NULL, NULL, false, start_ns, start_ns, end_ns, 0, false
    FROM api_calls
    WHERE process_id = $process AND call_group = 'sync'
),
in_order AS (
    SELECT o.*, coalesce(k.family = 'comm', false) AS is_communication
    FROM all_operations AS o
    LEFT JOIN kernel_names AS k ON k.name_id = o.name_id
    ORDER BY o.host_ns, o.start_ns, o.end_ns, o.token
)
-- Windows without an order of their own do not sort again. `number` is how many operations there are up to
-- here, without waits.
SELECT
    row_number() OVER () - 1 AS position, token <> hash('wait') AS is_operation,
    count(*) FILTER (WHERE token <> hash('wait')) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS number,
    token, shape, kind, name_id, host_ns, start_ns, end_ns, gpu_ns, is_launch, device_id, stream_id, is_result,
    is_communication
FROM in_order;

WITH copies AS (
    SELECT
        c.token, min(c.token) OVER (PARTITION BY c.kind, c.device_id, b.token, a.token) AS common_token
    FROM (FROM internal.loop_sequence WHERE kind IN ('H2D', 'D2H', 'copy')) AS c
    JOIN internal.loop_sequence AS b ON b.number = c.number - 1
    JOIN internal.loop_sequence AS a ON a.number = c.number + 1
    WHERE b.is_operation AND b.is_launch AND a.is_operation AND a.is_launch
),
copies_of_any_size AS (
    SELECT token, min(common_token) AS common_token
    FROM copies
    GROUP BY token
    HAVING min(common_token) <> token
)
UPDATE internal.loop_sequence
SET token = c.common_token
FROM copies_of_any_size AS c
WHERE c.token = loop_sequence.token
