/* parameters = [] */
-- Inputs of the gains of strategies, by launch: how busy each unit is in % of its peak, what warps wait for, and which
-- share of the traffic is unused. Values of metrics that were not collected are NULL; then there is no gain.
-- How many times faster tensor cores are in tf32 than ordinary arithmetic in fp32.
WITH tensor_speedups AS (
    SELECT
        compute_capability,
        max(flops_per_cycle) FILTER (precision = 'tf32')
            / max(flops_per_cycle) FILTER (precision = 'fp32') AS tensor_speedup
    FROM peak_rates()
    GROUP BY compute_capability
)
SELECT
    k.launch, k.dram_pct, k.l2_pct, k.issue_pct, k.divergence_pct, k.compute_major, k.fma_per_load_ratio,
    k.registers_per_thread,
    k.shared_per_block_bytes AS shared_bytes, k.blocks_per_sm, k.blocks_count, k.sm_count,
    coalesce(k.l1_passes_pct, k.l1_pct) AS l1_passes_pct,
    CASE
        WHEN r.is_known THEN coalesce(100 * r.flop_count / nullif(r.duration_ns, 0) * 1e9 / r.peak_flop_per_s, 0)
    END AS compute_pct,
    k.stall_memory_pct, k.stall_shared_pct, k.stall_exchange_pct,
    100 * (
        coalesce(c.load_sectors_count * (1 - k.load_bytes_per_sector_ratio / 32), 0)
        + coalesce(c.store_sectors_count * (1 - k.store_bytes_per_sector_ratio / 32), 0)
    ) / nullif(c.load_sectors_count + c.store_sectors_count, 0) AS unused_pct,
    -- A request of neighboring threads takes one pass of L1. A request of scattered threads takes about one pass for
    -- each sector that is mostly unused.
    c.load_requests_count
        * greatest(k.load_sectors_per_request_ratio * (1 - k.load_bytes_per_sector_ratio / 32), 1) AS load_passes,
    c.store_requests_count
        * greatest(k.store_sectors_per_request_ratio * (1 - k.store_bytes_per_sector_ratio / 32), 1) AS store_passes,
    100 * (
        coalesce(load_passes, 0) - coalesce(c.load_requests_count, 0) + coalesce(store_passes, 0)
            - coalesce(c.store_requests_count, 0)
    )
        / nullif(
            coalesce(load_passes, 0) + coalesce(store_passes, 0) + coalesce(k.shared_wavefronts_count, 0), 0
        ) AS scattered_pct,
    100 * k.bank_conflicts_count / nullif(k.shared_wavefronts_count, 0) AS conflicts_pct,
    100 * k.spill_sectors_count
        / nullif(k.spill_sectors_count + c.load_sectors_count + c.store_sectors_count, 0) AS local_pct,
    least(c.shared_limit, c.warp_limit, c.block_limit) AS blocks_without_registers,
    least(c.register_limit, c.warp_limit, c.block_limit) AS blocks_without_shared,
    k.shared_wavefronts_count > 0 AS uses_shared,
    CASE WHEN r.precision = 'fp32' THEN t.tensor_speedup END AS tensor_speedup,
    registers_for(
        k.blocks_per_sm::BIGINT + 1, a.registers_per_sm, warps_of(k.threads_per_block, 32), 32
    ) AS next_registers,
    shared_for(
        k.blocks_per_sm::BIGINT + 1, a.shared_per_sm_bytes, a.shared_unit_bytes, a.shared_driver_bytes
    ) AS next_shared_bytes
FROM ncu_kernels AS k
JOIN ncu_roofline AS r USING (launch)
JOIN _ncu_columns() AS c USING (launch)
LEFT JOIN tensor_speedups AS t ON t.compute_capability = k.compute_capability
LEFT JOIN compute_capabilities() AS a ON a.compute_capability = k.compute_capability;
