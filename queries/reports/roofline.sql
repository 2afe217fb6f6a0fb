/*
title = "How close kernels come to the roofline"
topic = "kernels"
place = 6
in_help = true
question = "How close does a kernel come to the peak of the GPU?"
examples = ["--gemm 8192,8192,8192", "--ncu decode.ncu.duckdb --plot"]
main = ["name", "total_ns", "calls", "precision", "tflop_per_s", "bytes_per_s", "roof_pct", "roof"]
details = [
    "traffic_ratio", "work_ratio", "ncu_ns", "other_flop_count", "l2_bytes", "l1_bytes", "l2_intensity_ratio",
    "l1_intensity_ratio",
]
description = """
Places kernels under the roofline: operations per byte of memory traffic against operations per second. Bytes are
DRAM bytes: measured by ncu, else the sampled share of the peak times the mean duration, else the minimum for the
size. Operations are those that ncu counted in the most common precision (ncu import of its raw page, launches with
the same name, grid and block); they include operations on tile padding. Otherwise they follow from the size: a
matrix product of M x K by K x N does 2 M N K; attention over B batches, H heads, S positions and D per head does 4
B H S S D, half of it if causal; an element-wise kernel counts as one operation per element. A given size applies to
the kernels of its family (gemm, attention, elementwise and activation) that could have done it in their time, or to
those that --kernel names. Otherwise sizes are taken from PyTorch's own NVTX ranges
(torch.autograd.profiler.emit_nvtx(record_shapes=True)), for the one kernel of the family that the innermost such
range of a matrix product or of attention launched; several kernels in one range share its work in an unknown way
and are left out. The roof is the lower of the peak (see peaks) and bandwidth x intensity."""
reading = """
roof memory: fewer bytes, or more use of each byte, move the kernel to the right. roof compute: lower precision or
tensor cores raise the roof. l2_intensity and l1_intensity are the same for the caches: where they are much lower
than intensity, the caches serve what would otherwise be DRAM traffic, and may be the limit. roof_pct above 80: near
the ceiling, leave it. Far below both roofs: latency, occupancy or caches; see classify-kernels. traffic_ratio well
above 1: data is read more than once (tile, swizzle for L2, fuse what follows into the epilogue). Bandwidth alone
(operations unknown) still shows how close to DRAM's peak a kernel runs."""
empty = """\
Neither bytes nor operations are known for any kernel: profile them (nsys-insight ncu plan, ncu import), give --gemm \
M,N,K, --attention B,H,S,D or --elements N, capture with --gpu-metrics-devices=all, or have PyTorch write sizes into \
its ranges: emit_nvtx(record_shapes=True)"""

[params.gemm]
type = "text"
pattern = '\d+,\d+,\d+'
help = "Size of the matrix products, as M,N,K"

[params.attention]
type = "text"
pattern = '\d+,\d+,\d+,\d+'
help = "Size of the attention, as B,H,S,D: batches, heads, positions, size of a head"

[params.causal]
default = false
help = "Attention is causal, which halves its operations"

[params.elements]
type = "integer"
least = 1
help = "Elements that element-wise kernels read and write"

[params.kernel]
type = "text"
help = "Only kernels whose name contains this text, of any family"

[params.precision]
default = "auto"
choices = ["auto", "fp64", "fp64_tensor", "fp32", "tf32", "fp16", "fp8", "fp4", "int8"]
help = "The precision whose peak to compare with; auto takes it from the kernel's name"

[shares]
compute_pct = "peak"
bandwidth_pct = "peak"
roof_pct = "the roof"

[columns]
name = "The kernel"
grid = "Blocks in the grid, x × y × z"
calls = "Executions on the GPU"
total_ns = "Sum of their durations"
avg_ns = "Mean duration"
ncu_ns = "Duration under ncu, which runs kernels one by one and at other clocks"
precision = "The precision whose peak is compared with; NULL where the name does not say"
flop_count = """\
Operations per call: as ncu counted them in this precision, else by its size; a mean over the calls whose size NVTX \
gives"""
other_flop_count = "Operations in other precisions, where ncu counted them"
work_ratio = "Operations that ncu counted as a multiple of what the size needs; above 1, tiles are padded"
bytes = "Bytes of memory traffic per call"
l2_bytes = "Bytes between L1 and L2 per call, by ncu"
l1_bytes = "Bytes of global and local access at L1 per call, by ncu"
traffic_ratio = """\
Measured bytes as a multiple of the minimum for the size; below 1, caches already held some of the data"""
intensity_ratio = "Operations per byte"
l2_intensity_ratio = "Operations per byte between L1 and L2"
l1_intensity_ratio = "Operations per byte at L1"
tflop_per_s = "Attained, in 10^12 operations per second"
compute_pct = "Share of the peak of the precision"
bytes_per_s = "Attained bandwidth"
bandwidth_pct = "Share of the peak memory bandwidth"
roof = "The lower roof at this intensity: memory or compute"
roof_pct = "Attained share of that roof"
flop_from = "Where the operations come from: ncu, size (given), nvtx"
bytes_from = "Where the bytes come from: ncu, gpu_metrics, size, nvtx"
gpu = "The GPU model that it ran on"

[notes]
clock.text = "compute peaks are those of the maximum clock; clocks drop under load"
clock.query = "SELECT count(*) AS rows FROM answer HAVING count(compute_pct) > 0"

above.text = "{kernels:kernel comes|kernels come} out above the peak: check the size, the precision and the kernel"
above.query = """
SELECT count(*) AS kernels FROM answer WHERE compute_pct > 100 OR bandwidth_pct > 105 HAVING count(*) > 0"""
*/
WITH given_sizes AS (
    SELECT
        list_transform(string_split($gemm, ','), lambda x: x::DOUBLE) AS g,
        list_transform(string_split($attention, ','), lambda x: x::DOUBLE) AS a,
        $elements::DOUBLE AS e
),
ncu AS MATERIALIZED (
    FROM _ncu_shapes
),
shapes AS (
    SELECT
        l.*, n.name, n.family, c.ncu_flop, c.other_flop_count, c.l2_bytes, c.l1_bytes, c.ncu_ns,
        CASE
            WHEN $precision <> 'auto' THEN $precision
            WHEN c.ncu_precision IS NOT NULL THEN c.ncu_precision
            ELSE _precision_by_name(n.name, n.family)
        END AS peak_precision,
        $kernel IS NULL AND n.family = 'gemm' OR contains(lower(n.name), lower($kernel)) AS as_gemm,
        $kernel IS NULL AND n.family = 'attention' OR contains(lower(n.name), lower($kernel)) AS as_attention,
        $kernel IS NULL AND n.family IN ('elementwise', 'activation')
            OR contains(lower(n.name), lower($kernel)) AS as_elements
    FROM launch_shapes AS l
    LEFT JOIN kernel_names AS n USING (name_id)
    LEFT JOIN _counted_work AS c USING (name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z)
    WHERE $kernel IS NULL OR contains(lower(n.name), lower($kernel))
),
shapes_with_peak AS (
    SELECT
        h.*,
        m.memory_bytes_per_s,
        k.tflop_per_s * 1e12 AS peak,
        CASE WHEN $causal THEN 2 ELSE 1 END AS causal_divisor,
        CASE h.peak_precision
            WHEN 'fp64' THEN 8
            WHEN 'fp64_tensor' THEN 8
            WHEN 'fp16' THEN 2
            WHEN 'fp8' THEN 1
            WHEN 'int8' THEN 1
            WHEN 'fp4' THEN 0.5
            ELSE CASE WHEN regexp_matches(h.name, 'Half|half|BFloat16|bfloat16') THEN 2 ELSE 4 END END AS size,
        CASE
            WHEN h.as_gemm AND $gemm IS NOT NULL THEN 2 * z.g[1] * z.g[2] * z.g[3]
            WHEN h.as_attention AND $attention IS NOT NULL
                THEN 4 * z.a[1] * z.a[2] * z.a[3] * z.a[3] * z.a[4] / causal_divisor
            WHEN h.as_elements THEN z.e
        END AS size_flop,
        CASE
            WHEN h.as_gemm AND $gemm IS NOT NULL THEN size * (z.g[1] * z.g[3] + z.g[3] * z.g[2] + z.g[1] * z.g[2])
            WHEN h.as_attention AND $attention IS NOT NULL THEN size * 4 * z.a[1] * z.a[2] * z.a[3] * z.a[4]
            WHEN h.as_elements THEN size * 2 * z.e
        END AS size_bytes,
        CASE WHEN h.family = 'attention' THEN t.flop_count / causal_divisor ELSE t.flop_count END AS traced_flop,
        size * t.elements_count AS traced_bytes,
        s.dram_pct / 100 * m.memory_bytes_per_s * h.avg_ns / 1e9 AS sampled_bytes,
        p.dram_bytes
    FROM shapes AS h
    CROSS JOIN given_sizes AS z
    LEFT JOIN (SELECT DISTINCT gpu_id, memory_bytes_per_s FROM gpu_peaks) AS m ON m.gpu_id = h.model_id
    LEFT JOIN gpu_peaks AS k ON k.gpu_id = h.model_id AND k.precision = h.peak_precision
    LEFT JOIN _sized_shapes AS t ON t.shape_id = h.shape_id
    LEFT JOIN (FROM _sampled_shapes WHERE samples >= 4) AS s ON s.shape_id = h.shape_id
        AND s.model_id IS NOT DISTINCT FROM h.model_id
    LEFT JOIN ncu AS p USING (name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z)
),
-- With --kernel, the given size is trusted. Otherwise a size is rejected for a kernel that would exceed 100% of a peak
-- with it (5% of tolerance).
shapes_with_work AS (
    SELECT
        *,
        $kernel IS NOT NULL OR NOT coalesce(
            size_flop > 1.05 * peak * avg_ns / 1e9 OR size_bytes > 1.05 * memory_bytes_per_s * avg_ns / 1e9, false
        ) AS fits,
        fits AND size_flop IS NOT NULL AS as_given,
        CASE WHEN as_given THEN size_flop ELSE traced_flop END AS needed_flop,
        coalesce(ncu_flop, needed_flop) AS flop_count,
        CASE WHEN as_given THEN size_bytes ELSE traced_bytes END AS needed_bytes,
        coalesce(dram_bytes, sampled_bytes, needed_bytes) AS bytes
    FROM shapes_with_peak
)
SELECT
    coalesce(name, '(no name)') AS name,
    grid_x || 'x' || grid_y || 'x' || grid_z AS grid,
    calls,
    total_ns,
    avg_ns,
    ncu_ns,
    peak_precision AS precision,
    flop_count,
    other_flop_count,
    ncu_flop / nullif(needed_flop, 0) AS work_ratio,
    bytes,
    l2_bytes,
    l1_bytes,
    coalesce(dram_bytes, sampled_bytes) / nullif(needed_bytes, 0) AS traffic_ratio,
    flop_count / nullif(bytes, 0) AS intensity_ratio,
    flop_count / nullif(l2_bytes, 0) AS l2_intensity_ratio,
    flop_count / nullif(l1_bytes, 0) AS l1_intensity_ratio,
    flop_count / nullif(avg_ns, 0) / 1e3 AS tflop_per_s,
    100 * flop_count / nullif(avg_ns, 0) * 1e9 / peak AS compute_pct,
    bytes / nullif(avg_ns, 0) * 1e9 AS bytes_per_s,
    100 * bytes / nullif(avg_ns, 0) * 1e9 / memory_bytes_per_s AS bandwidth_pct,
    CASE
        WHEN flop_count = 0 AND bytes > 0 THEN 'memory'
        WHEN flop_count / nullif(bytes, 0) * memory_bytes_per_s < peak THEN 'memory'
        WHEN flop_count * bytes * peak * memory_bytes_per_s IS NOT NULL THEN 'compute'
    END AS roof,
    CASE roof WHEN 'memory' THEN bandwidth_pct WHEN 'compute' THEN compute_pct END AS roof_pct,
    CASE
        WHEN ncu_flop IS NOT NULL THEN 'ncu' WHEN as_given THEN 'size' WHEN flop_count IS NOT NULL THEN 'nvtx'
    END AS flop_from,
    CASE
        WHEN dram_bytes IS NOT NULL THEN 'ncu'
        WHEN sampled_bytes IS NOT NULL THEN 'gpu_metrics'
        WHEN as_given THEN 'size'
        WHEN bytes IS NOT NULL THEN 'nvtx'
    END AS bytes_from,
    gpu
FROM shapes_with_work
WHERE flop_count IS NOT NULL OR bytes IS NOT NULL
ORDER BY total_ns DESC, name, blocks_count DESC, grid, threads_per_block, registers_per_thread, static_shared_bytes,
    dynamic_shared_bytes, local_per_thread_bytes, cluster_x, cluster_y, cluster_z, block_x, block_y, gpu, model_id
