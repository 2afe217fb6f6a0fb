-- What runs before and after on the stream, the idle time of the GPU before each operation, and the groups. Copies and
-- memsets of about one size are one group. The operations themselves are dropped.
INSERT INTO facts.operation_groups BY NAME
WITH copies AS (
    SELECT
        m.process_id, m.stream_id, m.start_ns,
        bool_or('pageable' IN (m.source_memory, m.target_memory)) AS is_pageable
    FROM memcpys AS m
    WHERE m.copy_kind IN ('H2D', 'D2H')
        AND EXISTS (FROM internal.grouped_operations WHERE label IN ('H2D copy', 'D2H copy'))
        AND m.start_ns BETWEEN (SELECT min(start_ns) FROM internal.grouped_operations)
            AND (SELECT max(start_ns) FROM internal.grouped_operations)
    GROUP BY m.process_id, m.stream_id, m.start_ns
),
keyed AS (
    SELECT
        o.*, c.is_pageable, CASE
            WHEN kind = 'kernel' THEN name_id
            WHEN label = 'H2D copy' THEN -1
            WHEN label = 'D2H copy' THEN -2
            WHEN label = 'other copy' THEN -3
            WHEN label = 'memset' THEN -4
            WHEN label = 'graph' THEN -5
            ELSE -6
        END AS key
    FROM internal.grouped_operations AS o
    LEFT JOIN copies AS c
        ON o.label IN ('H2D copy', 'D2H copy') AND c.process_id = o.process_id AND c.start_ns = o.start_ns
            AND c.stream_id IS NOT DISTINCT FROM o.stream_id
),
neighbors AS (
    SELECT
        *, lag(key) OVER on_stream AS before_key, lead(key) OVER on_stream AS after_key,
        CASE WHEN lead(key) OVER on_stream = -2 THEN lead(size_bytes) OVER on_stream END AS read_bytes,
        greatest(0, start_ns - max(end_ns) OVER (
            PARTITION BY process_id, device_id ORDER BY start_ns, end_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )) AS idle_ns
    FROM keyed
    WINDOW on_stream AS (PARTITION BY process_id, device_id, stream_id ORDER BY start_ns, end_ns)
)
SELECT
    process_id, device_id, kind, label, name_id, key,
    x_of(grid) AS grid_x, y_of(grid) AS grid_y, z_of(grid) AS grid_z,
    x_of(block) AS block_x, y_of(block) AS block_y, z_of(block) AS block_z,
    any_value(units) AS units, 100.0 * count(DISTINCT step) / any_value(steps) AS steps_pct,
    count(*) AS calls, sum(end_ns - start_ns)::BIGINT AS total_ns,
    min(end_ns - start_ns) AS min_ns, avg(size_bytes) AS size_bytes, sum(host_ns)::BIGINT AS host_ns,
    coalesce(sum(idle_ns), 0)::BIGINT AS idle_before_ns, count(DISTINCT stream_id) AS streams,
    mode(before_key) AS before_key, mode(after_key) AS after_key, count(read_bytes) AS read_backs,
    median(read_bytes) AS read_back_bytes, count(*) FILTER (is_in_graph) AS in_graph,
    100.0 * count(*) FILTER (is_pageable) / nullif(count(is_pageable), 0) AS pageable_pct
FROM neighbors
GROUP BY process_id, device_id, kind, label, name_id, key, grid, block, floor(log2(greatest(size_bytes, 1)));

DROP TABLE internal.grouped_operations
