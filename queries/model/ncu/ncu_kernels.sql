/*
description = """One row per launch that ncu profiled, with the important metrics as columns and what they mean: what
    bounds it, what limits occupancy, why warps wait."""
[columns]
launch = "The launch, in `ncu_launches`"
report = "File that the launch comes from"
ncu_id = "Number of the launch in that report, by ncu"
kernel = "The kernel's name as ncu prints it"
short_name = "The function's name alone"
implementation = "native, cutlass, cute, triton, inductor, pytorch, library"
family = "What the kernel does, as in `kernel_names`"
process_id = "Operating system's process id when ncu ran"
device_id = "CUDA device number"
gpu = "Name of the GPU: {gpu}"
compute_capability = "Compute capability of the GPU"
compute_major = "Major number of the compute capability"
blocks_count = "Blocks in the grid"
threads_per_block = "Threads in a block"
warps_per_block_ratio = "Warps in a block"
duration_ns = "Duration under ncu, which serializes kernels and may set other clocks: {duration_ns}"
bound = """For all launches of the kernel with this grid and block, by their means. compute: SM more than 20 points
    above memory; memory: the reverse; latency: both below 40%; balanced: both above 60%, near the peak; else
    unknown: {sm_pct}, {memory_pct}"""
memory_level = """Which part of the memory system bounds a memory-bound kernel: DRAM (above 70%), L2 misses (hits
    below 50% and DRAM above 40%), L2 (L1 hits below 20%, L2 hits of 50% or more, and a throughput of at least a
    tenth of L1's), L1"""
sm_pct = "SM throughput, share of its peak: {sm_pct}"
memory_pct = "Throughput of the busiest part of the memory system, share of its peak: {memory_pct}"
dram_pct = "DRAM throughput, share of its peak: {dram_pct}"
l1_pct = "L1 throughput, share of its peak: {l1_pct}"
l2_pct = "L2 throughput, share of its peak: {l2_pct}"
l1_hit_pct = "L1 hit rate: {l1_hit_pct}"
l2_hit_pct = "L2 hit rate: {l2_hit_pct}"
dram_bytes = "Read from and written to DRAM: {dram_read_bytes}, {dram_write_bytes}"
dram_bytes_per_s = "DRAM traffic: {dram_bytes_per_s}"
fp32_flop_per_s = """fp32 operations outside the tensor cores, a multiply-add as two: {fma_per_cycle},
    {fadd_per_cycle}, {fmul_per_cycle}"""
fp32_pct = "fp32 operations outside the tensor cores as a share of what the SMs can do in a cycle: {fma_per_cycle}"
fp32_flop_per_byte_ratio = "Arithmetic intensity: fp32 operations outside the tensor cores per byte of DRAM traffic"
load_sectors_per_request_ratio = """Sectors of 32 bytes per request of a warp for global loads: 4 where 32 threads
    load neighboring 4-byte values, 16 with 16-byte values: {load_sectors_count}, {load_requests_count}"""
load_bytes_per_sector_ratio = """Bytes that threads use of the 32 of a loaded sector; NULL without loads:
    {load_bytes_per_sector_ratio}"""
load_bytes_per_thread_ratio = "Bytes that a thread loads at once: 4 is a scalar float, 16 a 128-bit vector"
store_sectors_per_request_ratio = """Sectors of 32 bytes per request of a warp for global stores:
    {store_sectors_count}, {store_requests_count}"""
store_bytes_per_sector_ratio = """Bytes that threads write of the 32 of a stored sector; NULL without stores:
    {store_bytes_per_sector_ratio}"""
host_load_pct = """Sectors that L2 read from the memory of the host, as a share of those of global loads:
    {host_sectors_count}"""
atomic_pct = """Atomic operations as a share of the requests of warps to global memory and to the shared memory of other
    blocks: {atomic_requests_count}, {reduction_requests_count}"""
request_kind = """What most of these requests are, or what is unusual about them: atomic operations, other blocks (loads
    from the shared memory of other blocks of a cluster), host memory, polls (a warp loads one value from L2 again and
    again), else loads and stores"""
reread_ratio = """Bytes of the sectors that loads looked up in L1 as a multiple of what was read from DRAM:
    {dram_read_bytes}"""
l1_passes_pct = "Wavefronts of the data stage of L1 and shared memory, share of its peak: {l1_passes_pct}"
l1_passes_per_request_ratio = """Wavefronts per request of a warp, by their shares of the peaks: {l1_passes_pct},
    {l1_requests_pct}"""
bank_conflicts_count = "Bank conflicts in shared memory: {bank_conflicts_count}"
shared_wavefronts_count = "Wavefronts of shared memory for all requests: {shared_wavefronts_count}"
spill_sectors_count = "Sectors of local memory traffic: {spill_store_sectors_count}, {spill_load_sectors_count}"
registers_per_thread = "Registers per thread: {registers_per_thread}"
shared_per_block_bytes = """Shared memory per block, the driver's part included: {shared_per_block_bytes} or
    {dynamic_shared_bytes}"""
shared_per_sm_bytes = "Maximum shared memory per SM: {shared_per_sm_bytes}"
sm_count = "Streaming multiprocessors: {sm_count}"
waves_per_sm_ratio = "Waves per SM, the number of times that the grid fills the GPU: {waves_per_sm_ratio}"
theoretical_occupancy_pct = "Theoretical occupancy: {theoretical_occupancy_pct}"
occupancy_pct = "Achieved occupancy: {occupancy_pct}"
occupancy_limit = """What limits blocks per SM: warps (no room for more), registers, shared memory, blocks:
    {register_limit}, {shared_limit}, {warp_limit}, {block_limit}"""
blocks_per_sm = "Maximum resident blocks per SM"
active_warps_ratio = "Active warps per SM, on average: {active_warps_ratio}"
eligible_warps_ratio = "Eligible warps per scheduler, on average: {eligible_warps_ratio}"
issue_pct = "Issue slot utilization: {issue_pct}"
ipc_ratio = "Executed instructions per cycle (IPC) per SM: {ipc_ratio}"
tensor_pct = "Tensor pipe, share of its peak: {tensor_pct}"
tensor_half_pct = "Tensor pipe with fp16, bf16 or TF32, share of its peak: {tensor_half_pct}"
tensor_int_pct = "Tensor pipe with integers, share of its peak: {tensor_int_pct}"
fma_pct = "FMA pipe, share of its peak: {fma_pct}"
fma_half_pct = "fp16 on the FMA pipe, share of its peak: {fma_half_pct}"
alu_pct = "ALU pipe, share of its peak: {alu_pct}"
xu_pct = "XU pipe (transcendental functions, conversions), share of its peak: {xu_pct}"
lsu_pct = "LSU pipe, share of its peak: {lsu_pct}"
fp64_pct = "fp64 pipe, share of its peak: {fp64_pct}"
stall_long_scoreboard_pct = """Share of a warp's time in which it waited for global, local or texture memory:
    `smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio`"""
stall_barrier_pct = """Share of a warp's time in which it waited at a barrier:
    `smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio`"""
stall_wait_pct = """Share of a warp's time in which it waited for a fixed latency:
    `smsp__average_warps_issue_stalled_wait_per_issue_active.ratio`"""
stall_math_pipe_pct = """Share of a warp's time in which it waited for a busy pipe:
    `smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio`"""
stall_memory_pct = """Share of a warp's time in which it waited for global or local memory, or a place in its queue:
    long_scoreboard, lg_throttle, drain, tex_throttle:
    `smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio`"""
stall_shared_pct = """Share of a warp's time in which it waited for shared memory: short_scoreboard, mio_throttle:
    `smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio`"""
stall_exchange_pct = "Share of a warp's time in which it waited for shared memory or barriers: threads exchange values"
top_stall = "Dominant stall reason: the one that warps waited for longest"
top_stall_pct = "Share of the dominant stall reason in a warp's time"
divergence_pct = "Inactive threads per instruction of a warp (divergence), on average: {threads_per_instruction_ratio}"
branch_uniform_pct = "Uniform branches of a warp: {branch_uniform_pct}"
instructions_count = "Executed instructions of warps: {instructions_count}"
fma_per_load_ratio = """fp32 multiply-adds of warps per global load, asynchronous ones included: {fma_per_cycle},
    {cycles}, {global_loads_count}"""
fma_per_shared_pass_ratio = "fp32 multiply-adds of warps per pass of shared memory: {shared_wavefronts_count}"
name_arch = "Architecture in the name of a library kernel: 80, 90"
name_tile = "Tile in the name, M x N (x K)"
name_stages = "Pipeline stages in the name"
name_alignment = "Alignment in elements in the name"
name_schedule = "cooperative, pingpong, warp-specialized, split-K, stream-K, if the name says so"
name_math = "tensorop or simt, if the name says so"
*/
-- {column} above stands for the metrics of a column of `queries/catalog/ncu_metrics.toml`. Shares of stalls and the
-- class are calculated here, so that a rule is one condition on one row.
WITH stall_shares AS (
    SELECT
        launch,
        sum(stall_pct) FILTER (reason = 'long_scoreboard') AS stall_long_scoreboard_pct,
        sum(stall_pct) FILTER (reason = 'barrier') AS stall_barrier_pct,
        sum(stall_pct) FILTER (reason = 'wait') AS stall_wait_pct,
        sum(stall_pct) FILTER (reason = 'math_pipe_throttle') AS stall_math_pipe_pct,
        coalesce(
            sum(stall_pct) FILTER (reason IN ('long_scoreboard', 'lg_throttle', 'drain', 'tex_throttle')), 0
        ) AS stall_memory_pct,
        coalesce(sum(stall_pct) FILTER (reason IN ('short_scoreboard', 'mio_throttle')), 0) AS stall_shared_pct,
        stall_shared_pct + coalesce(sum(stall_pct) FILTER (reason IN ('barrier', 'membar')), 0) AS stall_exchange_pct,
        arg_max(reason, stall_pct) FILTER (reason <> 'selected') AS top_stall,
        max(stall_pct) FILTER (reason <> 'selected') AS top_stall_pct
    FROM (FROM ncu_stalls ORDER BY launch, reason)
    GROUP BY launch
),
launches_with_metrics AS (
    SELECT
        l.*, p.* EXCLUDE (launch), s.* EXCLUDE (launch),
        split_part(l.compute_capability, '.', 1)::INTEGER AS compute_major,
        (l.grid_x * l.grid_y * l.grid_z)::BIGINT AS blocks_count,
        (l.block_x * l.block_y * l.block_z)::BIGINT AS threads_per_block,
        least(p.register_limit, p.shared_limit, p.warp_limit, p.block_limit) AS limit_blocks,
        coalesce(
            p.shared_per_block_bytes,
            p.dynamic_shared_bytes + p.static_shared_bytes + coalesce(p.driver_shared_bytes, 0)
        ) AS shared_bytes,
        p.load_sectors_count / nullif(p.load_requests_count, 0) AS load_sectors_per_request_ratio,
        p.store_sectors_count / nullif(p.store_requests_count, 0) AS store_sectors_per_request_ratio,
        p.spill_store_sectors_count + p.spill_load_sectors_count AS spill_sectors_count,
        100 * (1 - p.threads_per_instruction_ratio / 32) AS divergence_pct,
        list_sum([
            p.load_requests_count, p.store_requests_count, p.atomic_requests_count, p.reduction_requests_count,
            p.cluster_requests_count
        ]) AS requests_count,
        p.dram_read_bytes + p.dram_write_bytes AS dram_bytes,
        (2 * p.fma_per_cycle + p.fadd_per_cycle + p.fmul_per_cycle) * p.sm_clock_hz AS fp32_flop_per_s,
        100 * (2 * p.fma_per_cycle + p.fadd_per_cycle + p.fmul_per_cycle) / (p.sm_count * f.flops_per_cycle) AS fp32_pct
    FROM ncu_launches AS l
    LEFT JOIN _ncu_columns() AS p USING (launch)
    LEFT JOIN stall_shares AS s USING (launch)
    LEFT JOIN peak_rates() AS f ON f.compute_capability = l.compute_capability AND f.precision = 'fp32'
)
SELECT
    launch, report, ncu_id, kernel, short_name, implementation, family, process_id, device_id, gpu, compute_capability,
    compute_major, grid_x, grid_y, grid_z, block_x, block_y, block_z, blocks_count, threads_per_block,
    threads_per_block / 32.0 AS warps_per_block_ratio,
    duration_ns,
    bound_of(avg(sm_pct) OVER same_shape, avg(memory_pct) OVER same_shape) AS bound,
    CASE WHEN bound = 'memory' THEN
        memory_level_of(
            avg(dram_pct) OVER same_shape, avg(l2_hit_pct) OVER same_shape, avg(l1_hit_pct) OVER same_shape,
            avg(l1_pct) OVER same_shape, avg(l2_pct) OVER same_shape
        )
    END AS memory_level,
    sm_pct, memory_pct, dram_pct, l1_pct, l2_pct, l1_hit_pct, l2_hit_pct, dram_bytes, dram_bytes_per_s,
    fp32_flop_per_s, fp32_pct, fp32_flop_per_s / nullif(dram_bytes_per_s, 0) AS fp32_flop_per_byte_ratio,
    load_sectors_per_request_ratio, nullif(load_bytes_per_sector_ratio, 0) AS load_bytes_per_sector_ratio,
    load_sectors_per_request_ratio * load_bytes_per_sector_ratio / 32 AS load_bytes_per_thread_ratio,
    store_sectors_per_request_ratio, nullif(store_bytes_per_sector_ratio, 0) AS store_bytes_per_sector_ratio,
    CASE
        WHEN load_sectors_count > 0 AND host_sectors_count >= 0
            THEN least(100, 100 * host_sectors_count / load_sectors_count)
    END AS host_load_pct,
    100 * (atomic_requests_count + reduction_requests_count) / nullif(requests_count, 0) AS atomic_pct,
    CASE
        WHEN atomic_pct > 50 THEN 'atomic operations'
        WHEN 2 * cluster_requests_count > requests_count THEN 'other blocks'
        WHEN host_load_pct > 50 THEN 'host memory'
        WHEN load_sectors_per_request_ratio < 1.5 AND l1_hit_pct < 1 AND l2_hit_pct > 99 AND dram_pct < 1 THEN 'polls'
        WHEN load_requests_count > 0 THEN 'loads and stores'
    END AS request_kind,
    32 * load_sectors_count / nullif(dram_read_bytes, 0) AS reread_ratio, l1_passes_pct,
    l1_passes_pct / nullif(l1_requests_pct, 0) AS l1_passes_per_request_ratio,
    bank_conflicts_count, shared_wavefronts_count, spill_sectors_count,
    registers_per_thread, shared_bytes AS shared_per_block_bytes, shared_per_sm_bytes,
    sm_count, waves_per_sm_ratio, theoretical_occupancy_pct, occupancy_pct,
    CASE
        WHEN limit_blocks = warp_limit THEN 'warps'
        ELSE nullif(concat_ws(' and ',
            CASE WHEN limit_blocks = register_limit THEN 'registers' END,
            CASE WHEN limit_blocks = shared_limit THEN 'shared memory' END,
            CASE WHEN limit_blocks = block_limit THEN 'blocks' END), '')
    END AS occupancy_limit,
    limit_blocks AS blocks_per_sm,
    active_warps_ratio, eligible_warps_ratio, issue_pct, ipc_ratio,
    tensor_pct, tensor_half_pct, tensor_int_pct, fma_pct, fma_half_pct, alu_pct, xu_pct, lsu_pct, fp64_pct,
    stall_long_scoreboard_pct, stall_barrier_pct, stall_wait_pct, stall_math_pipe_pct, stall_memory_pct,
    stall_shared_pct,
    stall_exchange_pct, top_stall, top_stall_pct,
    divergence_pct, branch_uniform_pct, instructions_count,
    fma_per_cycle * cycles / 32 / nullif(global_loads_count + coalesce(async_loads_count, 0), 0) AS fma_per_load_ratio,
    fma_per_cycle * cycles / 32 / nullif(shared_wavefronts_count, 0) AS fma_per_shared_pass_ratio,
    try_cast(coalesce(
        nullif(
            regexp_extract(
                kernel, '(?:^|[^A-Za-z0-9]|Mainloop)(?:[sS]m|cutlass_|cutlass3x_sm)(\d{2,3})(?:[^0-9]|$)', 1
            ),
            ''
        ),
        CASE regexp_extract(kernel, '^(volta|turing|ampere|ada|hopper|blackwell)_', 1)
            WHEN 'volta' THEN '70'
            WHEN 'turing' THEN '75'
            WHEN 'ampere' THEN '80'
            WHEN 'ada' THEN '89'
            WHEN 'hopper' THEN '90'
            WHEN 'blackwell' THEN '100'
        END) AS INTEGER) AS name_arch,
    -- In CUTLASS 3.x, stages and tile are numbers in a template: MainloopSm90TmaGmmaWarpSpecialized<4, cluster,
    -- schedule>, tile.
    coalesce(
        nullif(
            regexp_replace(
                regexp_extract(kernel_key(kernel), 'Mainloop\w*<\d+, .*?>, tuple<(C<\d+>, C<\d+>, C<\d+>)>', 1),
                'C<(\d+)>, C<(\d+)>, C<(\d+)>', '\1x\2x\3'
            ),
            ''
        ),
        nullif(regexp_extract(kernel, '(?:_|tilesize)(\d+x\d+(?:x\d+)?)', 1), '')) AS name_tile,
    try_cast(coalesce(
        nullif(regexp_extract(kernel_key(kernel), 'Mainloop\w*<(\d+),', 1), ''),
        nullif(regexp_extract(kernel, 'stages_\d+x(\d+)', 1), ''),
        nullif(regexp_extract(kernel, 'stages?_?(\d+)', 1), ''),
        nullif(regexp_extract(kernel, '_\d+x\d+_\d+x(\d+)(?:_|$)', 1), '')) AS INTEGER) AS name_stages,
    try_cast(nullif(regexp_extract(kernel, 'align(?:ment)?_?(\d+)', 1), '') AS INTEGER) AS name_alignment,
    CASE
        WHEN regexp_matches(kernel, '(?i)warpspecialized_?cooperative|ws_?coop|_coop') THEN 'cooperative'
        WHEN regexp_matches(kernel, '(?i)warpspecialized_?pingpong|pingpong') THEN 'pingpong'
        WHEN regexp_matches(kernel, '(?i)warpspecialized') THEN 'warp-specialized'
        WHEN regexp_matches(kernel, '(?i)stream_?k') THEN 'stream-K'
        WHEN regexp_matches(kernel, '(?i)split_?k') THEN 'split-K'
    END AS name_schedule,
    CASE
        WHEN regexp_matches(kernel, '_ffma_') THEN 'simt'
        WHEN regexp_matches(kernel, '(?i)tensorop|gmma|s\d{3,5}(?:gemm|fprop|dgrad|wgrad)|xmma') THEN 'tensorop'
        WHEN regexp_matches(kernel, '(?i)simt|_sgemm') THEN 'simt'
    END AS name_math
FROM launches_with_metrics
-- All launches of the same kernel, grid and block have the same bound, by their means, as in `_ncu_shapes`.
WINDOW same_shape AS (PARTITION BY kernel_key(kernel), grid_x, grid_y, grid_z, block_x, block_y, block_z);
