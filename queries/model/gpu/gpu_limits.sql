/*
description = """What an SM of each of the machine's GPUs can hold at once: from the trace, else from the catalog by
    compute capability."""
columns_of = "gpus"
[columns]
model_id = "The first GPU of the same model: GPUs of one model share it"
gpu = "Product name"
shared_per_block_bytes = "Most shared memory of a block that opts in"
shared_unit_bytes = "A block's shared memory is rounded up to a multiple of this"
shared_driver_bytes = "Shared memory that the driver takes of each block"
*/
-- The limits of the trace come first; the catalog fills in what the trace leaves out.
WITH gpus_with_limits AS (
    SELECT DISTINCT ON (g.gpu_id)
        g.gpu_id,
        g.name AS gpu,
        g.compute_capability,
        g.sm_count,
        coalesce(nullif(g.warp_size, 0), 32) AS warp_size,
        coalesce(nullif(g.warps_per_sm, 0), c.warps_per_sm) AS warps_per_sm,
        coalesce(nullif(g.blocks_per_sm, 0), c.blocks_per_sm) AS blocks_per_sm,
        coalesce(nullif(g.registers_per_sm, 0), c.registers_per_sm) AS registers_per_sm,
        coalesce(nullif(g.shared_per_sm_bytes, 0), c.shared_per_sm_bytes) AS shared_per_sm_bytes,
        coalesce(nullif(g.shared_per_block_optin_bytes, 0), c.shared_per_block_optin_bytes) AS shared_per_block_bytes,
        c.shared_unit_bytes,
        c.shared_driver_bytes
    FROM gpus AS g
    LEFT JOIN compute_capabilities() AS c USING (compute_capability)
    ORDER BY g.gpu_id, g.name, g.sm_count
)
SELECT
    gpu_id,
    min(gpu_id) OVER (
        PARTITION BY gpu, compute_capability, sm_count, warp_size, warps_per_sm, blocks_per_sm, registers_per_sm,
            shared_per_sm_bytes, shared_per_block_bytes
    ) AS model_id,
    * EXCLUDE (gpu_id)
FROM gpus_with_limits;
