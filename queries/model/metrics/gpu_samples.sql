/*
description = """One row per GPU and sampling interval, with the metrics that show what a kernel waits for; only with
    --gpu-metrics-devices."""
[columns]
gpu_id = "The machine's GPU, as in `gpus`"
start_ns = "When the interval began"
end_ns = "When the interval ended"
sms_active_pct = "Share of SMs that had a warp, averaged over the interval"
issue_pct = "Share of the cycles in which the SMs' schedulers issued an instruction"
tensor_pct = "Share of the cycles in which tensor cores were active"
dram_pct = "Bytes read from and written to the device's memory, as a share of its peak"
pcie_in_pct = "Bytes received over PCIe, as a share of its peak"
pcie_out_pct = "Bytes sent over PCIe, as a share of its peak"
clock_hz = "Clock of the SMs"
*/
-- Names of metrics differ between GPUs. Values outside 0 to 100 are left out: the first sample of a capture is often
-- invalid, and some counters overflow. A sample's timestamp is the start of its interval (checked on 2025.3 with
-- intervals of 10 and 20 µs against kernels with known bounds). After a pause, an interval is not longer than the
-- others.
WITH metric_ids AS (
    SELECT typeId, metricId, typeId & 255 AS gpu_id,
        CASE
            WHEN regexp_matches(metricName, '^SMs? Active', 'i') THEN 'SMs active'
            WHEN regexp_matches(metricName, '(^|/ *)SM Issue', 'i') THEN 'issue'
            WHEN regexp_matches(metricName, 'Tensor Active', 'i') THEN 'tensor'
            WHEN regexp_matches(metricName, 'DRAM.*Read', 'i') THEN 'DRAM read'
            WHEN regexp_matches(metricName, 'DRAM.*Write', 'i') THEN 'DRAM write'
            WHEN regexp_matches(metricName, '^PCIe RX Throughput', 'i') THEN 'PCIe in'
            WHEN regexp_matches(metricName, '^PCIe TX Throughput', 'i') THEN 'PCIe out'
            WHEN regexp_matches(metricName, '^GPC Clock Frequency', 'i') THEN 'clock'
        END AS metric
    FROM raw.TARGET_INFO_GPU_METRICS
    WHERE metric IS NOT NULL AND (metric = 'clock' OR metricName LIKE '%\%]%' ESCAPE '\')
),
-- One row per GPU and timestamp, with one column per metric.
samples AS (
    SELECT
        n.gpu_id,
        g.timestamp AS start_ns,
        max(g.value) FILTER (n.metric = 'SMs active')::DOUBLE AS sms_active_pct,
        max(g.value) FILTER (n.metric = 'issue')::DOUBLE AS issue_pct,
        max(g.value) FILTER (n.metric = 'tensor')::DOUBLE AS tensor_pct,
        (
            max(g.value) FILTER (n.metric = 'DRAM read') + max(g.value) FILTER (n.metric = 'DRAM write')
        )::DOUBLE AS dram_pct,
        max(g.value) FILTER (n.metric = 'PCIe in')::DOUBLE AS pcie_in_pct,
        max(g.value) FILTER (n.metric = 'PCIe out')::DOUBLE AS pcie_out_pct,
        max(g.value) FILTER (n.metric = 'clock')::DOUBLE AS clock_hz
    FROM raw.GPU_METRICS AS g
    JOIN metric_ids AS n ON n.typeId = g.typeId AND n.metricId = g.metricId
    WHERE g.value BETWEEN 0 AND 100 OR (n.metric = 'clock' AND g.value BETWEEN 1e6 AND 1e10)
    GROUP BY ALL
),
-- `step_ns` is the time to the next sample.
timed_samples AS (
    SELECT *, lead(start_ns) OVER (PARTITION BY gpu_id ORDER BY start_ns) - start_ns AS step_ns FROM samples
),
periods AS (
    SELECT gpu_id, quantile_disc(step_ns, 0.5) AS period_ns FROM timed_samples GROUP BY gpu_id
)
SELECT
    s.gpu_id,
    s.start_ns,
    s.start_ns + least(s.step_ns, p.period_ns) AS end_ns,
    s.sms_active_pct,
    s.issue_pct,
    s.tensor_pct,
    CASE WHEN s.dram_pct > 100 THEN 100 ELSE s.dram_pct END AS dram_pct,  -- least() would turn NULL into 100
    s.pcie_in_pct,
    s.pcie_out_pct,
    s.clock_hz
FROM timed_samples AS s
JOIN periods AS p ON p.gpu_id = s.gpu_id
WHERE s.step_ns > 0 AND p.period_ns > 0;
