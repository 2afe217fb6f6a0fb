-- How much of the GPU time of a step is known to be efficient, in %: by the catalog of constructs, or measured near the
-- nearer roof; and how much of the rest something replaces. NULL if nothing ran on a GPU.
SELECT
    100 * coalesce(sum(o.total_ns) FILTER (is_efficient), 0) / nullif(sum(o.total_ns), 0) AS efficient_pct,
    100 * coalesce(sum(o.total_ns) FILTER (NOT is_efficient AND judgment = 'replaceable'), 0)
        / nullif(sum(o.total_ns), 0) AS replaceable_pct
FROM (
    SELECT o.total_ns, o.judgment, coalesce(o.judgment = 'efficient' OR h.used_pct >= 80, false) AS is_efficient
    FROM step_operations AS o
    LEFT JOIN (
        SELECT name, grid, block, max(ceiling_used_pct) AS used_pct FROM headroom_report GROUP BY name, grid, block
    ) AS h
        ON h.name = o.name AND h.grid = o.grid_x || 'x' || o.grid_y || 'x' || o.grid_z
            AND h.block = o.block_x || 'x' || o.block_y || 'x' || o.block_z
) AS o
