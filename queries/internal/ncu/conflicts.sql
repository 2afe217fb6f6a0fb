-- The active warps of an SM with each of two strategies and with both, from the additional registers and shared memory
-- that they need. Eight warps usually suffice to hide latency (common practice).
WITH pairs AS (
    FROM $pairs AS t(pair, launch, first_registers, first_shared, second_registers, second_shared)
),
variants AS (
    SELECT pair, launch, 'first' AS variant, first_registers AS registers, first_shared AS shared FROM pairs
    UNION ALL
    SELECT pair, launch, 'second', second_registers, second_shared FROM pairs
    UNION ALL
    SELECT pair, launch, 'both', first_registers + second_registers, first_shared + second_shared FROM pairs
),
occupancies AS (
    SELECT
        w.pair, w.variant,
        warps_of(k.threads_per_block, 32) AS warps,
        least(
            c.warps_per_sm // warps,
            c.blocks_per_sm,
            blocks_by_registers_of(
                c.registers_per_sm, least((k.registers_per_thread + w.registers)::BIGINT, 255), warps, 32
            ),
            c.shared_per_sm_bytes // nullif(shared_allocated_of(
                greatest(k.shared_per_block_bytes - c.shared_driver_bytes + w.shared, 0)::BIGINT, c.shared_unit_bytes,
                c.shared_driver_bytes
            ), 0)
        ) * warps AS active
    FROM variants AS w
    JOIN ncu_kernels AS k USING (launch)
    JOIN compute_capabilities() AS c USING (compute_capability)
)
SELECT
    pair,
    max(active) FILTER (variant = 'first')::BIGINT AS first_warps,
    max(active) FILTER (variant = 'second')::BIGINT AS second_warps,
    max(active) FILTER (variant = 'both')::BIGINT AS both_warps,
    8 AS enough
FROM occupancies
GROUP BY pair
ORDER BY pair
