/*
description = "The rate that a large copy from or to pinned memory has on this machine; one row."
[columns]
bytes_per_s = "Measured in this trace, or that of the bus of such GPUs"
*/
-- The rate of large pinned copies in the trace: from 1 MiB, their latency is a tenth of their time or less. Without
-- any, what the bus of such GPUs reaches: 12 GB/s with PCIe 3 (before compute capability 8.0), 20 GB/s with PCIe 4.
-- PCIe 5 has twice as much.
SELECT
    coalesce(
        1e9 * sum(size_bytes)::BIGINT / nullif(sum(duration_ns), 0)::BIGINT,
        CASE WHEN (SELECT min(try_cast(compute_capability AS DOUBLE)) FROM gpus) < 8 THEN 12e9 ELSE 20e9 END
    ) AS bytes_per_s
FROM memcpys
WHERE copy_kind IN ('H2D', 'D2H') AND 'pinned' IN (source_memory, target_memory) AND size_bytes >= 1048576;
