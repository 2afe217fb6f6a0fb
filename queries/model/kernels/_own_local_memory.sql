/*
description = """Local memory of hand-written and generated kernels: nsys may leave the size per thread empty, so it is
    what a launch reserves beyond the smallest reservation of the process. No row if several processes use the GPU."""
[columns]
name = "Kernel name"
registers = "Registers per thread, the most of its launches"
local_bytes = "Local memory per thread beyond that of the launch with the least, in bytes"
*/
SELECT
    n.name,
    max(s.registers_per_thread) AS registers,
    max((s.local_total_bytes - s.least_bytes) / (s.sm_count * s.warps_per_sm * s.threads_per_warp)) AS local_bytes
FROM (SELECT *, min(local_total_bytes) OVER (PARTITION BY model_id) AS least_bytes FROM launch_shapes) AS s
JOIN kernel_names AS n USING (name_id)
WHERE n.provenance IN ('hand-written', 'Triton', 'Numba', 'CuPy', 'Halide', 'IREE', 'Mojo', 'cuTile')
    AND (SELECT count(DISTINCT process_id) FROM step_operations WHERE kind = 'kernel') = 1
GROUP BY n.name;
