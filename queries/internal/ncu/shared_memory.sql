-- The blocks of each launch that fit on an SM by shared memory: with its current size, at the cliff where one block
-- fewer fits, and with two buffers instead of one.
WITH launch_occupancies AS (
    SELECT
        k.launch,
        greatest(k.shared_per_block_bytes - c.shared_driver_bytes, 0)::BIGINT AS shared_bytes,
        k.blocks_per_sm::BIGINT AS blocks_per_sm,
        c.shared_per_sm_bytes // 2 AS half_bytes,
        least(
            shared_for(k.blocks_per_sm::BIGINT, c.shared_per_sm_bytes, c.shared_unit_bytes, c.shared_driver_bytes),
            c.shared_per_block_optin_bytes
        )
            AS most_bytes,
        least(
            k.blocks_per_sm,
            c.shared_per_sm_bytes // shared_allocated_of(2 * shared_bytes, c.shared_unit_bytes, c.shared_driver_bytes)
        )::BIGINT
            AS doubled_fit,
        CASE
            WHEN 2 * shared_bytes > c.shared_per_block_optin_bytes THEN 0 ELSE doubled_fit
        END AS double_buffered_blocks,
        warps_of(k.threads_per_block, 32) AS warps
    FROM ncu_kernels AS k
    JOIN compute_capabilities() AS c USING (compute_capability)
)
SELECT
    launch, shared_bytes, blocks_per_sm, half_bytes, most_bytes - shared_bytes AS cliff_bytes, double_buffered_blocks,
    warps
FROM launch_occupancies
WHERE shared_bytes IS NOT NULL AND blocks_per_sm > 0
ORDER BY launch
