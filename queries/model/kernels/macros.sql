-- Whether CUDA allows a grid, a block, and a size of shared memory (CUDA C++ Programming Guide, Compute Capabilities).
-- The product of an allowed grid fits into 64 bits. No SM has 16 MiB of shared memory.
CREATE MACRO is_grid(x, y, z) AS
    x BETWEEN 1 AND 2147483647 AND y BETWEEN 1 AND 65535 AND z BETWEEN 1 AND 65535;
CREATE MACRO is_block(x, y, z) AS
    x BETWEEN 1 AND 1024 AND y BETWEEN 1 AND 1024 AND z BETWEEN 1 AND 64 AND x::DOUBLE * y * z <= 1024;
CREATE MACRO shared_bytes_of(bytes) AS CASE WHEN bytes BETWEEN 0 AND 16777216 THEN bytes END;

-- One number for the three dimensions of a grid or a block, and the dimensions of such a number: for millions of
-- kernels, two columns are written instead of six. Dimensions that CUDA does not allow give NULL (CUDA C++ Programming
-- Guide, "Compute Capabilities").
CREATE MACRO dims_of(x, y, z) AS CASE
    WHEN x BETWEEN 0 AND 2147483647 AND y BETWEEN 0 AND 65535 AND z BETWEEN 0 AND 65535 THEN (x << 32) | (y << 16) | z
END;
CREATE MACRO x_of(dims) AS dims >> 32;
CREATE MACRO y_of(dims) AS (dims >> 16) & 65535;
CREATE MACRO z_of(dims) AS dims & 65535;

-- A kernel's name in the spelling that nsys and ncu share: nsys writes (int)4 for a template's 4, ncu leaves out some
-- namespaces.
CREATE MACRO kernel_key(name) AS regexp_replace(regexp_replace(regexp_replace(name,
    '(?:[A-Za-z_]\w*|<unnamed>|\(anonymous namespace\))::', '', 'g'),
    '\((?:unsigned |signed )?(?:bool|char|short|int|long|long long)\)(-?\d)', '\1', 'g'),
    '^(?:void |enable_if<.*?>::type )', '');

-- The name of the function alone: nsys's short name, which ncu's --kernel-name matches.
CREATE MACRO base_name_of_key(key) AS regexp_extract(key, '^(?:[^<(]* )?([^<( ]+)', 1);
CREATE MACRO kernel_base_name(name) AS base_name_of_key(kernel_key(name));

-- The arithmetic of the CUDA toolkit's occupancy calculator (cuda_occupancy.h). Registers are allocated to warps in
-- units of 256, and each quarter of an SM has a quarter of them. Shared memory is allocated to blocks in units, with
-- what the driver takes of it.
CREATE MACRO warps_of(threads, warp) AS (threads + warp - 1) // warp;

CREATE MACRO blocks_by_registers_of(per_sm, per_thread, warps, warp) AS
    per_sm // 4 // nullif((per_thread * warp + 255) // 256 * 256, 0) * 4 // nullif(warps, 0);

CREATE MACRO shared_allocated_of(bytes, unit, driver) AS (bytes + driver + unit - 1) // unit * unit;

-- The registers per thread and the shared memory per block at which `blocks` blocks fit on an SM.
CREATE MACRO registers_for(blocks, per_sm, warps, warp) AS per_sm // 4 // ((blocks * warps + 3) // 4) // 256 * 256
    // warp;

CREATE MACRO shared_for(blocks, per_sm, unit, driver) AS per_sm // nullif(blocks, 0) // unit * unit - driver;

-- The resources of an SM that limit it to `blocks` blocks.
CREATE MACRO limited_by_text(blocks, by_warps, by_slots, by_registers, by_shared) AS nullif(concat_ws(', ',
    CASE WHEN by_warps = blocks THEN 'warps' END,
    CASE WHEN by_slots = blocks THEN 'blocks' END,
    CASE WHEN by_registers = blocks THEN 'registers' END,
    CASE WHEN by_shared = blocks THEN 'shared memory' END
), '');

-- What one more block would need. `blocks` includes it; next_registers and next_shared are what a thread and a block
-- may then have, NULL where they set no limit.
CREATE MACRO next_step_text(blocks, registers, next_registers, shared, next_shared) AS blocks
    || CASE WHEN blocks = 1 THEN ' block: ' ELSE ' blocks: ' END
    || concat_ws(' and ',
        CASE WHEN next_registers IS NOT NULL THEN (registers - next_registers) || ' registers' END,
        CASE WHEN next_shared < shared THEN format('{:,} B of shared memory', shared - next_shared) END
    ) || CASE WHEN coalesce(next_registers < registers, next_shared < shared) THEN ' less'
        ELSE 'a larger carve-out of shared memory' END;

-- One key for a kernel and the shape of its launch.
CREATE MACRO shape_id_of(
    name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, cluster_x, cluster_y, cluster_z, registers,
    static_shared,
    dynamic_shared, local
) AS hash(
    name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, cluster_x, cluster_y, cluster_z, registers,
    static_shared,
    dynamic_shared, local
);

-- Whether a kernel of PyTorch or CuPy computes an array from one other array and numbers, element by element. A copy to
-- another layout does not count, as it may repeat a small array.
CREATE MACRO reads_one_array(name) AS
    regexp_matches(name, '^void at::native::(?:\w+_)?elementwise_kernel<')
    AND regexp_matches(name, 'std::array<char \*, \(\w+ \w+\)2>|[AB]UnaryFunctor<|\[lambda\([\w:<>]+\) \(instance')
    AND NOT regexp_matches(name, '_nocast<at::native::direct_copy|\bBinary\w*Functor<')
    AND NOT regexp_matches(name, 'std::array<char \*, \(\w+ \w+\)[^2]>')
    OR regexp_matches(name, '^cupy_\w+?__[a-z]+\d+(?:_(?:int|float|complex|bool))?_(?:[a-z]+\d+|bool)$')
    AND name NOT LIKE 'cupy_copy%';
