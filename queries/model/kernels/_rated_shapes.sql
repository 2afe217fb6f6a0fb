/*
description = "How close each launch shape comes to a roof, and the operations of a call."
[columns]
shape_id = "Number of the launch shape, as in `launch_shapes`"
model_id = "The model of the GPU, as in `gpu_limits`"
avg_ns = "Mean duration"
family = "What the kernel does, by its name"
precision = "The precision that it computes in; NULL where the name does not say"
flop_count = "Operations per call: by the sizes in NVTX, else as ncu counted them; NULL where unknown"
dram_bytes = "Bytes of memory traffic per call, by ncu"
roof_pct = "The busier of compute and memory, as a share of its peak; NULL where neither was measured"
bound = "compute, memory, latency, balanced, as `bound_of` has it; memory also where only the name says so"
*/
-- How close each launch shape comes to a roof, by what was measured: ncu, samples of GPU metrics, or operations that
-- are known from NVTX or ncu, and the duration. Without any of these, the name may say that memory is the limit, but
-- not how close a kernel comes to it.
WITH figures AS (
    SELECT
        l.shape_id, l.model_id, l.avg_ns, n.family,
        _precision_by_name(n.name, n.family) AS precision,
        coalesce(t.flop_count, c.ncu_flop) AS flop_count,
        p.dram_bytes,
        b.bound AS usual_bound,
        s.samples >= 4 AS is_sampled,
        greatest(
            100 * coalesce(t.flop_count, c.ncu_flop) / nullif(l.avg_ns, 0) / 1e3 / k.tflop_per_s,
            CASE WHEN is_sampled THEN greatest(s.tensor_pct, s.issue_pct) END, p.sm_pct
        ) AS compute_pct,
        coalesce(p.memory_pct, CASE WHEN is_sampled THEN s.dram_pct END) AS memory_pct
    FROM launch_shapes AS l
    LEFT JOIN kernel_names AS n USING (name_id)
    LEFT JOIN _sampled_shapes AS s ON s.shape_id = l.shape_id AND s.model_id IS NOT DISTINCT FROM l.model_id
    LEFT JOIN _ncu_shapes AS p USING (name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z)
    LEFT JOIN _counted_work AS c USING (name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z)
    LEFT JOIN _sized_shapes AS t ON t.shape_id = l.shape_id
    LEFT JOIN gpu_peaks AS k
        ON k.gpu_id = l.model_id AND k.precision = coalesce(c.ncu_precision, _precision_by_name(n.name, n.family))
    LEFT JOIN _usual_bounds AS b ON b.name_id = l.name_id AND l.avg_ns >= b.min_duration_ns
)
SELECT
    shape_id, model_id, avg_ns, family, precision, flop_count, dram_bytes,
    greatest(compute_pct, memory_pct) AS roof_pct,
    CASE
        WHEN compute_pct IS NOT NULL AND memory_pct IS NOT NULL THEN bound_of(compute_pct, memory_pct)
        WHEN compute_pct IS NULL AND memory_pct IS NULL AND usual_bound = 'memory' THEN 'memory'
    END AS bound
FROM figures;
