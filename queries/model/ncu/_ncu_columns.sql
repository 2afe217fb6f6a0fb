/* parameters = [] */
-- Metrics as columns: those of `queries/catalog/ncu_metrics.toml`, and some that are calculated from them. It is a
-- macro, so that a query computes only the columns that it names.
WITH metrics AS NOT MATERIALIZED (
    FROM raw.ncu_metrics
)
SELECT
    *,
    xbar_read_bytes + xbar_write_bytes AS xbar_bytes,
    lts_sectors_count * 32 AS lts_sectors_bytes,
    list_sum([
        load_sectors_count, store_sectors_count, spill_load_sectors_count, spill_store_sectors_count
    ]) * 32 AS l1_sectors_bytes,
    dram_cycle_bytes * dram_clock_hz AS peak_bytes_per_s,
    l2_cycle_bytes * l2_clock_hz AS l2_peak_bytes_per_s,
    l1_cycle_bytes * l1_clock_hz AS l1_peak_bytes_per_s
FROM metric_columns('metrics');
