/*
description = """One row per launch that ncu profiled: operations, bytes at each level of memory, and the peaks to
    compare them with."""
[columns]
launch = "The launch, in `ncu_launches`"
duration_ns = "Duration under ncu"
is_known = "Whether the operations are known: tensor core operations were counted, and most operations are not moves"
precision = "The precision of most of its operations; NULL if it did none, or they are unknown"
flop_count = "Operations in this precision, as ncu counted them"
other_flop_count = "Operations in all others"
dram_bytes = "Bytes read from DRAM and written to it"
l2_bytes = "Bytes between L1 and L2, else all that L2 looked up"
l1_bytes = "Bytes of global and local access at L1; the tensor memory accelerator bypasses it"
peak_flop_per_s = "Peak of that precision at the SM clock under ncu: SMs x clock x the catalog's operations per cycle"
peak_bytes_per_s = "Peak of DRAM at its clock under ncu"
l2_read_bytes_per_s = "What L2 sent to the SMs (ncu: lts2xbar)"
l2_peak_bytes_per_s = "Peak bandwidth of L2 at its clock under ncu"
l1_read_bytes_per_s = "What L1 sent to registers: of global and local memory (ncu: lsu_writeback of lgds)"
l1_peak_bytes_per_s = "Peak bandwidth of L1 at its clock under ncu, else 128 B x SMs x the clock of the SMs"
l1_passes_pct = """Passes of the data stage that L1 and shared memory share, of their peak: access that is not coalesced
    and bank conflicts need several"""
*/
-- A kernel has the precision of most of its operations. Operations are unknown if tensor core operations were not
-- counted, or if most operations may be moves.
WITH operation_totals AS (
    SELECT
        launch,
        arg_max(precision, (flop_count, precision)) FILTER (flop_count > 0 AND NOT may_be_moves) AS precision,
        max(flop_count) FILTER (NOT may_be_moves) AS flop_count,
        sum(flop_count) FILTER (NOT may_be_moves) - max(flop_count) FILTER (NOT may_be_moves) AS other_flop_count,
        max(flop_count) FILTER (may_be_moves) AS moves
    FROM ncu_operations
    GROUP BY launch
),
counted_launches AS (
    SELECT DISTINCT launch FROM raw.ncu_metrics WHERE metric LIKE 'sm\_\_ops\_path\_tensor\_src\_%.sum' ESCAPE '\'
)
SELECT
    l.launch,
    p.duration_ns,
    (c.launch IS NOT NULL OR p.tensor_pct = 0) AND coalesce(o.flop_count >= o.moves, true) AS is_known,
    CASE WHEN is_known AND o.flop_count > 0 THEN o.precision END AS precision,
    CASE WHEN is_known THEN o.flop_count END AS flop_count,
    CASE WHEN is_known THEN o.other_flop_count END AS other_flop_count,
    coalesce(p.dram_read_bytes + p.dram_write_bytes, p.dram_bytes_per_s * p.duration_ns / 1e9) AS dram_bytes,
    coalesce(p.xbar_bytes, p.lts_bytes, p.lts_sectors_bytes) AS l2_bytes,
    coalesce(p.l1_sum_bytes, p.l1_sectors_bytes) AS l1_bytes,
    p.sm_count * p.sm_clock_hz * r.flops_per_cycle AS peak_flop_per_s,
    p.peak_bytes_per_s,
    p.l2_read_bytes_per_s,
    p.l2_peak_bytes_per_s,
    p.l1_read_bytes_per_s,
    coalesce(p.l1_peak_bytes_per_s, 128 * p.sm_count * p.sm_clock_hz) AS l1_peak_bytes_per_s,
    p.l1_passes_pct
FROM raw.ncu_launches AS l
LEFT JOIN _ncu_columns() AS p ON p.launch = l.launch
LEFT JOIN counted_launches AS c ON c.launch = l.launch
LEFT JOIN operation_totals AS o ON o.launch = l.launch
LEFT JOIN peak_rates() AS r ON r.compute_capability = l.compute_capability AND r.precision = o.precision;
