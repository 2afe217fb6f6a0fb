/* parameters = [] */
-- Metrics as columns. A column takes the first of its metrics that was collected. It is a macro, so that a query
-- computes only the columns that it names.
SELECT
    launch,
    max(value) FILTER (metric = 'gpu__time_duration.sum') AS duration_ns,
    max(value) FILTER (metric = 'sm__throughput.avg.pct_of_peak_sustained_elapsed') AS sm_pct,
    max(value) FILTER (metric = 'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed') AS memory_pct,
    coalesce(
        max(value) FILTER (metric = 'gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed'),
        max(value) FILTER (metric = 'dram__throughput.avg.pct_of_peak_sustained_elapsed')) AS dram_pct,
    max(value) FILTER (metric = 'l1tex__throughput.avg.pct_of_peak_sustained_active') AS l1_pct,
    max(value) FILTER (metric = 'lts__throughput.avg.pct_of_peak_sustained_elapsed') AS l2_pct,
    max(value) FILTER (metric = 'l1tex__t_sector_hit_rate.pct') AS l1_hit_pct,
    max(value) FILTER (metric = 'lts__t_sector_hit_rate.pct') AS l2_hit_pct,
    max(value) FILTER (metric = 'dram__bytes.sum.per_second') AS dram_bytes_per_s,
    max(value) FILTER (metric = 'dram__bytes_read.sum') AS dram_read_bytes,
    max(value) FILTER (metric = 'dram__bytes_write.sum') AS dram_write_bytes,
    max(value) FILTER (metric = 'l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum') AS load_sectors_count,
    max(value) FILTER (metric = 'l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum') AS load_requests_count,
    max(value) FILTER (metric = 'l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum') AS store_sectors_count,
    max(value) FILTER (metric = 'l1tex__t_requests_pipe_lsu_mem_global_op_st.sum') AS store_requests_count,
    max(value) FILTER (
        metric = 'smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio'
    ) AS load_bytes_per_sector_ratio,
    max(value) FILTER (
        metric = 'smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio'
    ) AS store_bytes_per_sector_ratio,
    max(value) FILTER (metric = 'l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum') AS bank_conflicts_count,
    max(value) FILTER (metric = 'l1tex__data_pipe_lsu_wavefronts_mem_shared.sum') AS shared_wavefronts_count,
    max(value) FILTER (metric = 'l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum') AS spill_store_sectors_count,
    max(value) FILTER (metric = 'l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum') AS spill_load_sectors_count,
    max(value) FILTER (metric = 'launch__registers_per_thread') AS registers_per_thread,
    coalesce(
        max(value) FILTER (metric = 'launch__shared_mem_per_block_allocated'),
        max(value) FILTER (metric = 'launch__shared_mem_per_block')) AS shared_per_block_bytes,
    max(value) FILTER (metric = 'launch__shared_mem_per_block_dynamic') AS dynamic_shared_bytes,
    max(value) FILTER (metric = 'launch__shared_mem_per_block_static') AS static_shared_bytes,
    max(value) FILTER (metric = 'launch__shared_mem_per_block_driver') AS driver_shared_bytes,
    max(value) FILTER (metric = 'device__attribute_max_shared_memory_per_multiprocessor') AS shared_per_sm_bytes,
    coalesce(
        max(value) FILTER (metric = 'launch__sm_count'),
        max(value) FILTER (metric = 'device__attribute_multiprocessor_count')) AS sm_count,
    max(value) FILTER (metric = 'launch__waves_per_multiprocessor') AS waves_per_sm_ratio,
    max(value) FILTER (metric = 'sm__maximum_warps_per_active_cycle_pct') AS theoretical_occupancy_pct,
    max(value) FILTER (metric = 'sm__warps_active.avg.pct_of_peak_sustained_active') AS occupancy_pct,
    max(value) FILTER (metric = 'sm__warps_active.avg.per_cycle_active') AS active_warps_ratio,
    max(value) FILTER (metric = 'smsp__warps_eligible.avg.per_cycle_active') AS eligible_warps_ratio,
    max(value) FILTER (metric = 'launch__occupancy_limit_registers') AS register_limit,
    max(value) FILTER (metric = 'launch__occupancy_limit_shared_mem') AS shared_limit,
    max(value) FILTER (metric = 'launch__occupancy_limit_warps') AS warp_limit,
    max(value) FILTER (metric = 'launch__occupancy_limit_blocks') AS block_limit,
    max(value) FILTER (metric = 'smsp__issue_active.avg.pct_of_peak_sustained_active') AS issue_pct,
    max(value) FILTER (metric = 'sm__inst_executed.avg.per_cycle_active') AS ipc_ratio,
    coalesce(
        max(value) FILTER (metric = 'sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active'),
        max(value) FILTER (metric = 'sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active'),
        max(value) FILTER (
            metric = 'sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active'
        )) AS tensor_pct,
    coalesce(
        max(value) FILTER (metric = 'sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active'),
        max(value) FILTER (
            metric = 'sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active'
        )) AS tensor_half_pct,
    coalesce(
        max(value) FILTER (metric = 'sm__pipe_tensor_op_imma_cycles_active.avg.pct_of_peak_sustained_active'),
        max(value) FILTER (
            metric = 'sm__inst_executed_pipe_tensor_op_imma.avg.pct_of_peak_sustained_active'
        )) AS tensor_int_pct,
    coalesce(
        max(value) FILTER (metric = 'sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active'),
        max(value) FILTER (metric = 'sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active')) AS fma_pct,
    coalesce(
        max(value) FILTER (metric = 'sm__inst_executed_pipe_fma_type_fp16.avg.pct_of_peak_sustained_active'),
        max(value) FILTER (metric = 'sm__inst_executed_pipe_fp16.avg.pct_of_peak_sustained_active')) AS fma_half_pct,
    coalesce(
        max(value) FILTER (metric = 'sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active'),
        max(value) FILTER (metric = 'sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active')) AS alu_pct,
    max(value) FILTER (metric = 'sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active') AS xu_pct,
    max(value) FILTER (metric = 'sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active') AS lsu_pct,
    coalesce(
        max(value) FILTER (metric = 'sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active'),
        max(value) FILTER (metric = 'sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active')) AS fp64_pct,
    max(value) FILTER (metric = 'smsp__inst_executed.sum') AS instructions_count,
    max(value) FILTER (
        metric = 'smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed'
    ) AS fma_per_cycle,
    max(value) FILTER (
        metric = 'smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed'
    ) AS fadd_per_cycle,
    max(value) FILTER (
        metric = 'smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed'
    ) AS fmul_per_cycle,
    coalesce(
        max(value) FILTER (metric = 'smsp__sass_inst_executed_op_global_ld.sum'),
        max(value) FILTER (metric = 'sass__inst_executed_global_loads')) AS global_loads_count,
    max(value) FILTER (metric = 'smsp__inst_executed_op_ldgsts.sum') AS async_loads_count,
    max(value) FILTER (metric = 'smsp__cycles_elapsed.avg') AS cycles,
    max(value) FILTER (metric = 'smsp__thread_inst_executed_per_inst_executed.ratio') AS threads_per_instruction_ratio,
    max(value) FILTER (metric = 'smsp__sass_average_branch_targets_threads_uniform.pct') AS branch_uniform_pct,
    coalesce(
        max(value) FILTER (metric = 'smsp__cycles_elapsed.avg.per_second'),
        max(value) FILTER (metric = 'gpc__cycles_elapsed.avg.per_second')) AS sm_clock_hz,
    max(text) FILTER (metric = 'device__attribute_display_name') AS gpu,
    max(value) FILTER (metric = 'l1tex__m_xbar2l1tex_read_bytes.sum')
        + max(value) FILTER (metric = 'l1tex__m_l1tex2xbar_write_bytes.sum') AS xbar_bytes,
    max(value) FILTER (metric = 'lts__t_bytes.sum') AS lts_bytes,
    max(value) FILTER (metric = 'lts__t_sectors.sum') * 32 AS lts_sectors_bytes,
    max(value) FILTER (metric = 'l1tex__t_bytes.sum') AS l1_sum_bytes,
    sum(value) FILTER (metric IN (
        'l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum', 'l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum',
        'l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum', 'l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum'))
            * 32 AS l1_sectors_bytes,
    max(value) FILTER (metric = 'dram__bytes.sum.peak_sustained')
        * max(value) FILTER (metric = 'dram__cycles_elapsed.avg.per_second')
        AS peak_bytes_per_s,
    max(value) FILTER (metric = 'derived__lts__lts2xbar_bytes.sum.per_second') AS l2_read_bytes_per_s,
    max(value) FILTER (metric = 'derived__lts__lts2xbar_bytes.sum.peak_sustained')
        * max(value) FILTER (metric = 'lts__cycles_elapsed.avg.per_second')
        AS l2_peak_bytes_per_s,
    max(value) FILTER (metric = 'derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.per_second') AS l1_read_bytes_per_s,
    max(value) FILTER (metric = 'derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.peak_sustained')
        * max(value) FILTER (metric = 'l1tex__cycles_elapsed.avg.per_second') AS l1_peak_bytes_per_s,
    max(value) FILTER (metric = 'l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed') AS l1_passes_pct,
    bool_or(metric LIKE 'sm\_\_ops\_path\_tensor\_src\_%.sum' ESCAPE '\') AS tensor_counted
FROM raw.ncu_metrics
GROUP BY launch;
