/*
description = """One row per kernel and configuration of the trace and launch that ncu profiled of it; the best matches
    only."""
[columns]
name_id = "The kernel in the trace, in `kernel_names`"
grid = "Grid in the trace, x × y × z"
block = "Block in the trace, x × y × z"
launch = "The launch, in `ncu_kernels`"
match = """What agrees, from best to worst: name, grid, block, order (the report's launches are in the trace in that
    order); name, grid, block; function, grid, block (another template instance); name; function"""
order_places = "At how many places of the trace the report's launches follow each other in that order; 0 means none"
*/
-- A kernel of the trace and one that ncu profiled are the same if name, grid and block agree. Otherwise, measurements
-- of the same function or the same shape are still useful. Only the best matches are listed, with their quality.
-- In addition, the order of launches is compared: the launches of a report, as a text of one character per kernel, are
-- searched in the launches of the trace. This text ignores grids, because they vary with the length of a prompt or a
-- cache.
WITH profiled_launches AS (
    SELECT
        launch, report, ncu_id,
        kernel_key(kernel) AS key, base_name_of_key(key) AS short_name,
        grid_x || 'x' || grid_y || 'x' || grid_z AS grid,
        block_x || 'x' || block_y || 'x' || block_z AS block
    FROM raw.ncu_launches
),
traced_launches AS (
    SELECT
        k.process_id, k.name_id, k.correlation_id, k.start_ns,
        k.grid_x || 'x' || k.grid_y || 'x' || k.grid_z AS grid,
        k.block_x || 'x' || k.block_y || 'x' || k.block_z AS block,
        n.key, n.short_name
    FROM kernel_events AS k
    JOIN (
        SELECT name_id, kernel_key(name) AS key, base_name_of_key(key) AS short_name
        FROM strings
        WHERE name_id IN (SELECT DISTINCT name_id FROM kernel_events)
    ) AS n USING (name_id)
    WHERE n.short_name IN (SELECT short_name FROM profiled_launches)
),
-- One character for each kernel, from U+4E00 on.
letters AS (
    SELECT key, chr((19968 + dense_rank() OVER (PARTITION BY 0 ORDER BY key))::INTEGER) AS letter
    FROM (SELECT DISTINCT key FROM profiled_launches)
),
report_texts AS (
    SELECT report, string_agg(letter, '' ORDER BY ncu_id, launch) AS text
    FROM profiled_launches JOIN letters USING (key)
    GROUP BY report
),
process_texts AS (
    SELECT process_id, string_agg(coalesce(letter, '.'), '' ORDER BY correlation_id, start_ns) AS text
    FROM traced_launches LEFT JOIN letters USING (key)
    GROUP BY process_id
),
-- At how many places of the trace the launches of a report occur in their order.
report_occurrences AS (
    SELECT
        r.report, sum((length(p.text) - length(replace(p.text, r.text, ''))) // length(r.text))::BIGINT AS order_places
    FROM report_texts AS r, process_texts AS p
    GROUP BY r.report
),
configurations AS (
    SELECT DISTINCT name_id, key, short_name, grid, block FROM traced_launches
),
pairs AS (
    SELECT
        c.name_id, c.grid, c.block, p.launch, p.report,
        CASE
            WHEN p.key = c.key AND p.grid = c.grid AND p.block = c.block THEN 1
            WHEN p.grid = c.grid AND p.block = c.block THEN 2
            WHEN p.key = c.key THEN 3
            ELSE 4
        END AS rank
    FROM configurations AS c
    JOIN profiled_launches AS p ON p.short_name = c.short_name
)
SELECT
    name_id, grid, block, launch,
    CASE
        WHEN rank = 1 AND order_places > 0 THEN 'name, grid, block, order'
        WHEN rank = 1 THEN 'name, grid, block'
        WHEN rank = 2 THEN 'function, grid, block'
        WHEN rank = 3 THEN 'name'
        ELSE 'function'
    END AS match,
    CASE WHEN rank = 1 THEN order_places END AS order_places
FROM (SELECT *, min(rank) OVER (PARTITION BY name_id, grid, block) AS best FROM pairs)
LEFT JOIN report_occurrences USING (report)
WHERE rank = best;
