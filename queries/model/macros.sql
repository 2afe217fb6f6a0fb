-- A global id of nsys packs 8 bits of host, 8 of VM, 24 of process and 24 of thread. The loader makes `pid_of`, which
-- gives the process (nsys_insight/ingest/processes.py).
CREATE MACRO tid_of(global_id) AS global_id & 16777215;

-- One key for a call of a process: a join on it takes half as long as a join on two columns. The id is multiplied, not
-- shifted, because calls inside other calls have negative ids (nsys_insight/ingest/raw.py).
CREATE MACRO call_of(correlation_id, process_id) AS correlation_id * 16777216 + process_id;

-- One key for a thread of a process.
CREATE MACRO thread_of(thread_id, process_id) AS process_id << 24 | thread_id;

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

-- The clocks of host and GPU are fitted to each other, so an event may end before it starts. Its duration is then 0;
-- start_ns and end_ns stay as recorded. Without an end, the duration is NULL.
CREATE MACRO duration(start_ns, end_ns) AS CASE WHEN end_ns < start_ns THEN 0 ELSE end_ns - start_ns END;

-- Whether a line of the environment is a launcher's: the rank of the process, or the number of ranks. No other line is
-- read.
CREATE MACRO is_launcher_line(line) AS regexp_matches(
    line,
    '^(RANK|OMPI_COMM_WORLD_RANK|SLURM_PROCID|PMI_RANK|WORLD_SIZE|OMPI_COMM_WORLD_SIZE|SLURM_NTASKS'
    '|PMI_SIZE)="?[0-9]{1,9}"?$'
);

-- Whether a name fits a pattern, in which * stands for any text and ? for one character. RE2 takes linear time; the
-- time of GLOB grows with a power of the number of stars.
CREATE MACRO fits_pattern(name, pattern) AS regexp_full_match(
    name, '(?s)' || replace(replace(regexp_escape(pattern), '\*', '.*'), '\?', '.')
);

-- The name of an API function without the suffixes that only the linker needs: cudaMemcpyAsync_ptsz_v10000 is
-- cudaMemcpyAsync.
CREATE MACRO api_name(recorded) AS regexp_replace(recorded, '(_ptsz|_ptds)?(_v[0-9]+)?(_ptsz|_ptds)?$', '');

-- What a CUDA API call is for. 'launch' puts a kernel on the GPU, 'graph launch' may run hundreds of them, 'sync' makes
-- the host wait.
CREATE MACRO api_group(name) AS CASE
    WHEN regexp_matches(name, '^cu(da)?Launch(Cooperative)?(Kernel|Grid|$)') THEN 'launch'
    WHEN regexp_matches(name, '^cu(da)?GraphLaunch') THEN 'graph launch'
    WHEN regexp_matches(name, '^cu(da)?(Device|Stream|Event|Ctx|Thread)Synchronize') THEN 'sync'
    WHEN regexp_matches(name, '^cu(da)?Mem(cpy|PrefetchAsync|PrefetchBatchAsync)') THEN 'copy'
    WHEN regexp_matches(name, '^cu(da)?Memset') THEN 'memset'
    WHEN regexp_matches(
        name,
        '^(cudaMalloc|cudaHostAlloc|cudaHostRegister|cuMemAlloc|cuMemHost(Alloc|Register)|cuMemCreate'
        '|cu(Mipmapped)?Array(3D)?Create)'
    )
        THEN 'alloc'
    WHEN regexp_matches(
        name, '^(cudaFree|cudaHostUnregister|cuMemFree|cuMemHostUnregister|cuMemRelease|cu(Mipmapped)?ArrayDestroy)'
    )
        THEN 'free'
    WHEN regexp_matches(name, '^cu(da)?Graph|^cu(da)?Stream(Begin|End)Capture') THEN 'graph'
    WHEN regexp_matches(name, '^cu(da)?Event|^cu(da)?StreamWaitEvent') THEN 'event'
    WHEN regexp_matches(name, '^cu(da)?(Module|Library|Kernel|Func)') THEN 'module'
    ELSE 'other'
END;

-- A name with # for its numbers: step 1 and step 2 are both step #. A number within a word is part of a name: conv2d,
-- gemm_fp8. It counts after some words: layer12. Neighboring numbers share a separator, so there are two passes.
CREATE MACRO _fold_numbers(name) AS regexp_replace(name, '(^|[^A-Za-z0-9])[0-9]+($|[^A-Za-z0-9])', '\1#\2', 'g');
CREATE MACRO folded_name(name) AS _fold_numbers(_fold_numbers(regexp_replace(
    regexp_replace(name, ',? *seq *= *[0-9]+', '', 'g'),
    '(?i)(step|iter|iteration|layer|block|batch|epoch|frame|token|phase|level)[0-9]+', '\1#', 'g'
)));

-- The folded name, if several names differ only in their numbers; else the name itself: conv_fp16 stays unchanged.
CREATE MACRO fold(name) AS CASE
    WHEN min(name) OVER (PARTITION BY folded_name(name)) <> max(name) OVER (PARTITION BY folded_name(name))
        THEN folded_name(name)
    ELSE name
END;

-- Whether a call of the OS runtime sleeps, or waits for an event outside of the process.
CREATE MACRO is_sleep_or_poll(name) AS regexp_matches(
    name, '^((clock_)?nanosleep|u?sleep|p?poll|p?select|epoll_p?wait)$'
);

-- Whether an MPI function only receives. MPI_Sendrecv is recorded with what it sends.
CREATE MACRO is_mpi_receive(name) AS regexp_matches(name, '^MPI_I?m?recv', 'i');

-- The kind of an MPI function, as in `mpi_calls`, where nsys records names alone.
CREATE MACRO mpi_kind(name) AS CASE
    WHEN regexp_matches(name, '_(init|create|free|split|dup|rank|size|Init|Finalize|Init_thread)$') THEN 'other'
    WHEN regexp_matches(name, '^MPI_(Wait|Test|Start)') THEN 'wait'
    WHEN regexp_matches(name, '^MPI_(I?[bsr]?send|I?m?recv|I?sendrecv|I?m?probe)', 'i') THEN 'message'
    WHEN regexp_matches(
        name, '^MPI_(I?(barrier|bcast|gather|scatter|allgather|alltoall|allreduce|reduce|scan|exscan|neighbor_))', 'i'
    ) THEN 'collective'
    ELSE 'other'
END;

-- Whether the name of an NVTX range says warm-up.
CREATE MACRO is_warm_up_name(name) AS regexp_matches(name, '(?i)(^|[^a-z])warm(ing)?[ _-]?up');

-- Words in messages of nsys that do not concern kernels, copies or CUDA calls.
CREATE MACRO _other_data() AS
    '(?i)paranoid|backtrace|CPU (IP|kernel|sampl)|context switch|perf event|sampling|thread state|unified memory'
    '|GPU metric|GPU counter|ERR_NVGPUCTRPERM|ftrace|syscall|OS runtime|OpenGL|Vulkan|DX1[12]|Direct3D|WDDM|ETW'
    '|OpenACC|OpenMP|cuDNN|cuBLAS|NVTX|MPI|UCX|\bNIC\b|InfiniBand|NVENC|NVDEC|video';

-- Whether a program has this overhead without nsys, too. The driver loads or compiles a kernel at its first launch, or
-- has no room for more launches; or a library is loaded. CUPTI has kinds for these (CUpti_ActivityOverheadKind 1, 4, 5,
-- 6), which nsys up to 2026 calls Unknown. Unknown overhead is not attributed to the profiler.
CREATE MACRO is_program_overhead(overhead) AS regexp_matches(
    overhead, '(?i)^(unknown$|dlm?open|dlclose)|module load|function load|compil|command buffer'
);

-- Whether an NVTX range is an operator of a framework, such as aten::copy_.
CREATE MACRO is_operator_name(name) AS regexp_matches(
    name, '^(aten|prims?|autograd|torch|c10d)::|\b(op_id|seq) = [0-9]'
);

-- The requests that a text names: req=3, request_ids=[a, b], or a number as in request 3.
CREATE MACRO _request_ids(name) AS list_filter(list_transform(string_split(coalesce(
    nullif(
        regexp_extract(name, '(?i)(?:^|[^a-z])req(?:uest)?s?(?:[_ ]?ids?)? *[=:#] *[\[(]?([\w.-]+(?:, *[\w.-]+)*)', 1),
        ''
    ),
    regexp_extract(name, '(?i)(?:^|[^a-z])req(?:uest)?s?(?:[_ ]?ids?)?[ _-]#?(\d+(?:, *\d+)*)', 1)
), ','), lambda id: trim(id)), lambda id: id <> '');

-- The short form of a copy direction: H2D for nsys's 'Host-to-Device'.
CREATE MACRO copy_kind_word(label) AS
    replace(
        replace(
            replace(replace(replace(replace(label, 'Unified ', 'UM '), 'Host', 'H'), 'Device', 'D'), 'Array', 'A'),
            'Peer', 'P'
        ),
        '-to-', '2'
    );

-- Each of `events` (start_ns and more) that begins in one of `windows` (start_ns, end_ns and more; disjoint), with that
-- window: its times are window_ns and window_end_ns. Events and windows are joined by time bucket, about eight buckets
-- per window; an ASOF join would sort all events and hold them in memory. The first and the last window may be
-- unbounded.
CREATE MACRO begun_in(events, windows) AS TABLE
WITH nonempty_windows AS MATERIALIZED (
    FROM query_table(windows) WHERE end_ns > start_ns
),
time_span AS MATERIALIZED (
    SELECT
        min(at_ns) AS from_ns, max(at_ns) AS until_ns,
        coalesce(min(at_ns) FILTER (abs(at_ns) < 9223372036854775807), 0) AS first_ns,
        coalesce(max(at_ns) FILTER (abs(at_ns) < 9223372036854775807), 0) AS last_ns,
        greatest(1, (last_ns - first_ns) // (4 * count(*))) AS bucket_ns
    FROM (SELECT unnest([start_ns, end_ns]) AS at_ns FROM nonempty_windows)
    HAVING count(*) > 0
)
SELECT e.* EXCLUDE (bucket), w.* EXCLUDE (bucket) RENAME (start_ns AS window_ns, end_ns AS window_end_ns)
FROM (
    SELECT
        e.*,
        CASE
            WHEN start_ns >= from_ns AND start_ns < until_ns
                THEN greatest(first_ns, least(last_ns, start_ns)) // bucket_ns
        END AS bucket
    FROM query_table(events) AS e CROSS JOIN time_span
) AS e
JOIN (
    SELECT
        w.*,
        unnest(range(
            greatest(first_ns, least(last_ns, start_ns)) // bucket_ns,
            greatest(first_ns, least(last_ns, end_ns)) // bucket_ns + 1
        )) AS bucket
    FROM nonempty_windows AS w CROSS JOIN time_span
) AS w USING (bucket)
WHERE e.start_ns >= w.start_ns AND e.start_ns < w.end_ns;

-- The GPU intervals (gpu_id, start_ns, end_ns and more; disjoint for each GPU) that lie entirely in one of `windows`
-- (start_ns, end_ns; disjoint). window_ns is the start of the window.
CREATE MACRO whole_in(intervals, windows) AS TABLE
WITH window_times AS (
    SELECT start_ns, end_ns FROM query_table(windows)
)
SELECT * EXCLUDE (window_end_ns)
FROM begun_in(intervals, 'window_times')
WHERE end_ns <= window_end_ns;

-- The parts of GPU intervals that are cut by the edge of a window, one row per part. Such intervals are few. The time
-- buckets of an interval end with the last window: an interval may last a thousand times as long as the windows. The
-- first part of an interval begins with the interval, in a window that began before. Only intervals that end after this
-- window have further parts, and each of these begins with a window.
CREATE MACRO cut_in(intervals, windows) AS TABLE
WITH nonempty_windows AS MATERIALIZED (
    SELECT start_ns, end_ns FROM query_table(windows) WHERE end_ns > start_ns
),
time_span AS MATERIALIZED (
    SELECT
        greatest(1, (max(end_ns) - min(start_ns)) // (8 * count(*))) AS bucket_ns, min(start_ns) AS from_ns,
        max(end_ns) AS until_ns
    FROM nonempty_windows HAVING count(*) > 0
),
window_edges AS (
    SELECT at_ns, at_ns // bucket_ns AS bucket
    FROM (SELECT unnest([start_ns, end_ns]) AS at_ns FROM nonempty_windows) CROSS JOIN time_span
),
bucketed_intervals AS NOT MATERIALIZED (
    SELECT
        i.*, greatest(start_ns, from_ns) // bucket_ns AS bucket, least(end_ns, until_ns) // bucket_ns AS last_bucket
    FROM query_table(intervals) AS i CROSS JOIN time_span
),
intervals_at_edges AS MATERIALIZED (
    SELECT DISTINCT i.* EXCLUDE (bucket, last_bucket)
    FROM (
        FROM bucketed_intervals
        UNION ALL
        SELECT * REPLACE (unnest(range(bucket + 1, last_bucket + 1)) AS bucket)
        FROM bucketed_intervals
        WHERE last_bucket > bucket
    ) AS i
    JOIN window_edges AS e USING (bucket)
    WHERE i.start_ns < e.at_ns AND i.end_ns > e.at_ns
),
-- Each interval with the last window that begins before it.
first_parts AS MATERIALIZED (
    SELECT i.*, w.start_ns AS window_ns, w.end_ns AS window_end_ns
    FROM intervals_at_edges AS i ASOF LEFT JOIN nonempty_windows AS w ON w.start_ns <= i.start_ns
),
continued_intervals AS MATERIALIZED (
    FROM first_parts WHERE window_ns IS NULL OR window_end_ns < end_ns
)
SELECT * EXCLUDE (window_end_ns) REPLACE (least(end_ns, window_end_ns) AS end_ns)
FROM first_parts
WHERE window_end_ns > start_ns
UNION ALL
SELECT
    b.* EXCLUDE (window_end_ns) REPLACE (
        w.start_ns AS start_ns, least(b.end_ns, w.end_ns) AS end_ns, w.start_ns AS window_ns
    )
FROM (FROM nonempty_windows CROSS JOIN (SELECT DISTINCT gpu_id FROM continued_intervals)) AS w
ASOF JOIN continued_intervals AS b ON b.gpu_id = w.gpu_id AND b.start_ns < w.start_ns
WHERE b.end_ns > w.start_ns;

-- The parts of GPU intervals that lie in windows: entire intervals and cut ones.
CREATE MACRO cut_to(intervals, windows) AS TABLE
FROM whole_in(intervals, windows) UNION ALL FROM cut_in(intervals, windows);

-- A kernel's name in the spelling that nsys and ncu share: nsys writes (int)4 for a template's 4, ncu leaves out some
-- namespaces.
CREATE MACRO kernel_key(name) AS regexp_replace(regexp_replace(regexp_replace(name,
    '(?:[A-Za-z_]\w*|<unnamed>|\(anonymous namespace\))::', '', 'g'),
    '\((?:unsigned |signed )?(?:bool|char|short|int|long|long long)\)(-?\d)', '\1', 'g'),
    '^(?:void |enable_if<.*?>::type )', '');

-- The name of the function alone: nsys's short name, which ncu's --kernel-name matches.
CREATE MACRO base_name_of_key(key) AS regexp_extract(key, '^(?:[^<(]* )?([^<( ]+)', 1);
CREATE MACRO kernel_base_name(name) AS base_name_of_key(kernel_key(name));

-- What bounds a kernel, by how busy SMs and memory are, each in % of its peak. The first true condition counts: the
-- side that is 20 points busier is the bound, even if it is not busy.
CREATE MACRO bound_of(sm_pct, memory_pct, margin := 20, low := 40, high := 60) AS CASE
    WHEN sm_pct > memory_pct + margin THEN 'compute'
    WHEN memory_pct > sm_pct + margin THEN 'memory'
    WHEN sm_pct < low AND memory_pct < low THEN 'latency'
    WHEN sm_pct > high AND memory_pct > high THEN 'balanced'
    ELSE 'unknown'
END;

-- The part of the memory system that a memory-bound kernel waits for.
CREATE MACRO memory_level_of(dram_pct, l2_hit_pct, l1_hit_pct) AS CASE
    WHEN dram_pct > 70 THEN 'DRAM'
    WHEN l2_hit_pct < 50 AND dram_pct > 40 THEN 'L2 misses'
    WHEN l1_hit_pct < 20 AND l2_hit_pct >= 50 THEN 'L2'
    WHEN l1_hit_pct < 20 THEN 'L1'
END;

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

-- Ranks in a sentence: rank 3; ranks 1, 2 and 4; ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more.
CREATE MACRO ranks_text(numbers) AS CASE WHEN len(numbers) = 1 THEN 'rank ' ELSE 'ranks ' END
    || array_to_string(numbers[:8], ', ')
    || CASE WHEN len(numbers) > 8 THEN ' and ' || (len(numbers) - 8) || ' more' ELSE '' END;

-- A number of bytes, rounded: two decimals below 10, else one. format_bytes cuts them off.
CREATE MACRO _two_decimals(number) AS format(if(number < 9.995, '{:.2f}', '{:.1f}'), number);
CREATE MACRO bytes_text(bytes) AS CASE
    WHEN bytes < 1024 THEN bytes || ' B'
    WHEN bytes < 1048524 THEN _two_decimals(bytes / 1024) || ' KiB'
    WHEN bytes < 1073689395 THEN _two_decimals(bytes / 1048576) || ' MiB'
    ELSE _two_decimals(bytes / 1073741824) || ' GiB'
END;

-- A time in a sentence, in the unit that leaves three digits: 2.24 ms. time_text in nsys_insight/text/units.py follows
-- the same rule.
CREATE MACRO time_text(ns) AS CASE
    WHEN ns IS NULL THEN NULL
    WHEN abs(ns) < 999.5 THEN format('{:.3g} ns', ns::DOUBLE)
    WHEN abs(ns) < 999.5e3 THEN format('{:.3g} µs', ns / 1e3)
    WHEN abs(ns) < 999.5e6 THEN format('{:.3g} ms', ns / 1e6)
    WHEN abs(ns) < 999.5e9 THEN format('{:.3g} s', ns / 1e9)
    ELSE format('{:,} s', round(ns / 1e9)::BIGINT)
END;

-- What a saving of host time is worth without the profiler, which makes every launch cost more.
CREATE MACRO profiler_share_text() AS 'expect 75% or less without the profiler';

-- A share in a sentence: 0.06%, 8.5%, 100%.
CREATE MACRO share_text(pct) AS CASE
    WHEN pct IS NULL THEN NULL
    WHEN abs(pct) >= 99.95 THEN format('{:.0f}%', pct::DOUBLE)
    WHEN abs(pct) >= 0.95 THEN format('{:.1f}%', pct::DOUBLE)
    ELSE format('{:.1g}%', pct::DOUBLE)
END;

-- A number in a sentence: 196; 0.03; 2.5.
CREATE MACRO count_text(number) AS CASE
    WHEN number IS NULL THEN NULL
    WHEN abs(number - round(number)) < 0.05 AND abs(number) >= 0.95 THEN format('{:,}', round(number)::BIGINT)
    WHEN abs(number) >= 0.95 THEN format('{:.1f}', number::DOUBLE)
    ELSE format('{:.2g}', number::DOUBLE)
END;

-- A number with its noun: 1 launch call; 196 launch calls; 3 copies.
CREATE MACRO counted_text(number, one, many := NULL) AS
    count_text(number) || ' ' || CASE count_text(number) WHEN '1' THEN one ELSE coalesce(many, one || 's') END;

-- An operation in a sentence: a kernel by the name of its function, any other operation by its full name.
CREATE MACRO operation_text(name) AS CASE WHEN name LIKE '%(%' THEN kernel_base_name(name) ELSE name END;

-- The numbers of the first late steps in brackets; empty if more than half of all steps are late.
CREATE MACRO late_steps_text(steps, all_steps) AS CASE
    WHEN 2 * len(steps) > all_steps THEN ''
    ELSE ' (' || array_to_string(steps[:8], ', ') || CASE WHEN len(steps) > 8 THEN ', …' ELSE '' END || ')'
END;

-- The value that all rows of a group have in common; NULL if they differ.
CREATE MACRO common_value(value) AS CASE WHEN min(value) = max(value) AND count(value) = count(*) THEN min(value) END;

-- The cause of idle time as an enum: words take several times as long to write and compare. Used only with literals,
-- which are cast once. The words are those of `facts.idle_time` and `_idle_of`. They are in alphabetical order, because
-- `idle_charges` puts the causes of one instant in that order.
CREATE MACRO idle_host(word) AS word::ENUM (
    'API calls', 'CPU work', 'after the last operation', 'allocation', 'before the first operation', 'blocking copies',
    'late', 'launch call', 'launch call in progress',
    'launch latency', 'launched before', 'managed memory', 'not in the trace', 'profiler', 'same launch call',
    'sync calls'
);
