/*
title = "Sampled metrics"
topic = "program"
place = 45
page = false
question = "How high were the sampled metrics of GPUs (SMs, tensor cores, memory, links, clocks) and network cards?"
examples = ["", "--during busy", "--group-by step"]
main = ["name", "source", "avg", "max", "samples"]
details = ["unit", "p99"]
description = """
Mean, extremes and percentiles of every sampled metric. Metrics of GPUs in [Throughput %] have only samples from 0 to
100: the first sample of a capture is often invalid. Clocks stand in Hz, as the export has them, although their names
say MHz. --during busy keeps the samples of a GPU that begin while an
operation in scope runs on it; with --nvtx, these are the operations launched inside the range, so this is how a range
uses the GPU. --group-by step splits by the steps of the program. Values of network cards stand as recorded: the
export does not say whether a value is a rate or a count, so none is added up. Power is not read: exports have no table
for it that we know. Not read either: metrics of InfiniBand switches, SoCs and CPUs."""
reading = """
High SMs Active with low SM Issue: kernels wait for memory. High DRAM bandwidth: the memory is the limit. A clock that
falls in the course of the run: the GPU is limited by power or heat. See classify-kernels for the kernels."""
empty = """\
No sampled metrics are recorded in this scope; to record them, capture with: nsys profile --gpu-metrics-devices=all, \
and --nic-metrics=true for network cards"""

[params.during]
default = "all"
choices = ["all", "busy"]
help = "Which samples of GPUs: all, or those that begin while an operation in scope runs"

[params.group_by]
default = "none"
choices = ["none", "step"]
help = "Split the samples by the steps of the program"

[columns]
name = "The metric, with its unit in brackets where nsys writes it there"
source = "GPU and its number, or the network card"
step = "Number of the step; NULL without --group-by step"
avg = "Mean of the samples"
min = "Smallest"
med = "Median"
p99 = "99th percentile"
max = "Largest"
samples = "How many samples"
unit = "Unit of a network card's metric, in nsys's words"

[notes]
range.text = "with --nvtx, samples of GPUs are those of the whole trace; --during busy selects those of the range"
range.query = "FROM scope WHERE nvtx IS NOT NULL AND $during = 'all'"
*/
WITH operations_on_gpu AS MATERIALIZED (
    SELECT gpu_of(process_id, device_id) AS group_id, 0 AS thread, start_ns, end_ns AS close_ns
    FROM gpu_ops
    WHERE $during = 'busy'
),
samples AS (
    SELECT name, 'GPU ' || gpu_id AS source, gpu_id, start_ns, value, NULL AS unit
    FROM gpu_metrics
    WHERE name NOT LIKE '%[Throughput \%]' ESCAPE '\' OR value BETWEEN 0 AND 100
    UNION ALL
    SELECT name, nic, NULL, start_ns, value, unit FROM nic_metrics
),
chosen_samples AS (
    SELECT s.*
    FROM samples AS s
    ASOF LEFT JOIN (SELECT group_id AS gpu_id, start_ns, close_ns FROM _stretches_of('operations_on_gpu')) AS o
        ON o.gpu_id = s.gpu_id AND o.start_ns <= s.start_ns
    WHERE $during = 'all' OR s.gpu_id IS NULL OR s.start_ns < o.close_ns
),
step_times AS (
    SELECT step, start_ns, end_ns FROM steps WHERE $group_by = 'step' AND step IS NOT NULL
),
stepped_samples AS (
    SELECT c.*, CASE WHEN c.start_ns < t.end_ns THEN t.step END AS step
    FROM chosen_samples AS c ASOF LEFT JOIN step_times AS t ON t.start_ns <= c.start_ns
)
SELECT
    name, source, step, avg(value) AS avg, min(value) AS min, median(value) AS med, quantile_cont(value, 0.99) AS p99,
    max(value) AS max, count(*) AS samples, unit
FROM stepped_samples
WHERE $group_by = 'none' OR step IS NOT NULL
GROUP BY ALL
ORDER BY source, name, step
