/*
description = """Kernels of the program's own whose threads hold little and take long: with at most 32 registers and no
    shared memory a thread holds a few numbers at once, and the time is many times what 16 bytes per thread take at the
    bandwidth of the memory. Grids of fewer than eight waves may loop over the data."""
[columns]
name = "Kernel name"
times = "How many times as long it takes as 16 bytes per thread at the bandwidth of the GPU's memory"
narrow_block = "Threads in a block, x × y, where it is less than eight wide and at least as high; else NULL"
*/
SELECT
    name,
    sum(total_ns) / sum(1e9 * 16 * calls * blocks_count * threads_per_block / memory_bytes_per_s) AS times,
    max_by(if(block_x < 8 AND block_y >= 8, block_x || 'x' || block_y, NULL), total_ns) AS narrow_block
FROM step_operations
WHERE kind = 'kernel' AND provenance IN ('hand-written', 'Numba') AND registers_per_thread <= 32
    AND static_shared_bytes + dynamic_shared_bytes = 0 AND waves_per_sm >= 8 AND avg_ns >= 20000
GROUP BY name
HAVING times >= if(narrow_block IS NULL, 6, 3);
