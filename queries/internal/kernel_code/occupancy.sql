-- How many blocks of each kernel in `requirements` fit on an SM of each compute capability, without a trace: with the
-- requested block size (by default the best), with two buffers instead of one, and with every other block size.
WITH configurations AS (
    SELECT w.number, c.*, w.registers, w.shared_bytes, w.block AS requested_block, b.block, false AS is_double
    FROM requirements AS w
    CROSS JOIN compute_capabilities() AS c
    CROSS JOIN (SELECT unnest(generate_series(32, 1024, 32)) AS block) AS b
    UNION ALL
    SELECT w.number, c.*, w.registers, w.shared_bytes, w.block, w.block, false
    FROM requirements AS w CROSS JOIN compute_capabilities() AS c
    WHERE w.block % 32 <> 0 OR w.block > 1024
    UNION ALL
    SELECT w.number, c.*, w.registers, 2 * w.shared_bytes, w.block, b.block, true
    FROM requirements AS w
    CROSS JOIN compute_capabilities() AS c
    CROSS JOIN (
        SELECT unnest(generate_series(32, 1024, 32)) AS block
        UNION SELECT block FROM requirements WHERE block IS NOT NULL
    ) AS b
    WHERE w.shared_bytes > 0
),
occupancies AS (
    SELECT
        *,
        warps_of(block, 32) AS warps_per_block,
        warps_per_sm // warps_per_block AS by_warps,
        blocks_by_registers_of(registers_per_sm, registers, warps_per_block, 32) AS by_registers,
        CASE WHEN shared_bytes > shared_per_block_optin_bytes THEN 0
            ELSE shared_per_sm_bytes
                // nullif(shared_allocated_of(shared_bytes, shared_unit_bytes, shared_driver_bytes), 0)
        END AS by_shared,
        CASE WHEN block > 1024 THEN 0 ELSE least(by_warps, blocks_per_sm, by_registers, by_shared) END AS blocks
    FROM configurations
),
best_blocks AS (
    SELECT number, compute_capability, arg_max(block, (blocks * block, block)) AS block
    FROM occupancies
    WHERE NOT is_double AND block % 32 = 0
    GROUP BY number, compute_capability
),
reported_configurations AS (
    SELECT
        c.*,
        CASE WHEN blocks > 0 AND blocks < least(by_warps, blocks_per_sm) THEN blocks + 1 END AS next_blocks,
        CASE
            WHEN by_registers < next_blocks THEN registers_for(next_blocks, registers_per_sm, warps_per_block, 32)
        END AS next_registers,
        CASE WHEN by_shared < next_blocks THEN
            shared_for(next_blocks, shared_per_sm_bytes, shared_unit_bytes, shared_driver_bytes)
        END AS next_shared,
        least(
            shared_for(blocks, shared_per_sm_bytes, shared_unit_bytes, shared_driver_bytes),
            shared_per_block_optin_bytes
        )
            - shared_bytes AS shared_cliff_bytes,
        b.block AS best_block
    FROM occupancies AS c
    JOIN best_blocks AS b USING (number, compute_capability)
    WHERE NOT c.is_double AND c.block = coalesce(c.requested_block, b.block)
)
SELECT
    c.number,
    c.compute_capability,
    c.block,
    c.registers AS registers_per_thread,
    c.shared_bytes,
    100.0 * c.blocks * c.warps_per_block / c.warps_per_sm AS occupancy_pct,
    c.blocks AS blocks_per_sm,
    c.blocks * c.warps_per_block AS active_warps,
    CASE
        WHEN c.block > 1024 THEN 'block size'
        ELSE limited_by_text(c.blocks, c.by_warps, c.blocks_per_sm, c.by_registers, c.by_shared)
    END
        AS limited_by,
    CASE
        WHEN c.next_shared <= 0 THEN NULL
        ELSE next_step_text(c.next_blocks, c.registers, c.next_registers, c.shared_bytes, c.next_shared)
    END
        AS next_step,
    c.next_blocks,
    c.next_registers,
    100.0 * c.next_blocks * c.warps_per_block / c.warps_per_sm AS next_pct,
    c.next_shared IS NOT NULL AS next_needs_shared,
    greatest(c.shared_cliff_bytes, 0) AS shared_cliff_bytes,
    d.blocks AS double_buffered_blocks,
    100.0 * d.blocks * d.warps_per_block / d.warps_per_sm AS double_buffered_pct,
    c.best_block,
    100.0 * e.blocks * e.warps_per_block / e.warps_per_sm AS best_pct
FROM reported_configurations AS c
LEFT JOIN occupancies AS d ON d.number = c.number AND d.compute_capability = c.compute_capability AND d.is_double
    AND d.block = c.block
JOIN occupancies AS e ON e.number = c.number AND e.compute_capability = c.compute_capability AND NOT e.is_double
    AND e.block = c.best_block
ORDER BY c.number, string_split(c.compute_capability, '.')::INTEGER[]
