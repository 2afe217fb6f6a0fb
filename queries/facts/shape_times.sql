-- GPUs of one model count as one: a kernel that ran on all eight has one row.
CREATE TABLE IF NOT EXISTS facts.shape_times (
    name_id BIGINT, grid_x BIGINT, grid_y BIGINT, grid_z BIGINT, block_x BIGINT, block_y BIGINT, block_z BIGINT, cluster_x BIGINT,
    cluster_y BIGINT, cluster_z BIGINT, registers_per_thread BIGINT, static_shared_bytes BIGINT, dynamic_shared_bytes BIGINT,
    local_per_thread_bytes BIGINT, model_id BIGINT, calls BIGINT, total_ns BIGINT, med_ns DOUBLE, min_ns BIGINT, max_ns BIGINT,
    shared_executed_bytes BIGINT
);

INSERT INTO facts.shape_times BY NAME
SELECT
    k.name_id,
    k.grid_x, k.grid_y, k.grid_z,
    k.block_x, k.block_y, k.block_z,
    k.cluster_x, k.cluster_y, k.cluster_z,
    k.registers_per_thread,
    k.static_shared_bytes,
    k.dynamic_shared_bytes,
    k.local_per_thread_bytes,
    l.model_id,
    count(*) AS calls,
    sum(k.duration_ns)::BIGINT AS total_ns,
    quantile_cont(k.duration_ns, 0.5) AS med_ns,
    min(k.duration_ns) AS min_ns,
    max(k.duration_ns) AS max_ns,
    max(k.shared_executed_bytes) AS shared_executed_bytes
FROM kernel_events AS k
LEFT JOIN gpu_limits AS l ON l.gpu_id = gpu_of(k.process_id, k.device_id)
GROUP BY ALL;
