-- What `_cpu_work` shows.
CREATE TABLE IF NOT EXISTS facts.cpu_work (
    counted_by VARCHAR, nvtx_path VARCHAR, what VARCHAR, time_ns DOUBLE, wall_pct DOUBLE, work_pct DOUBLE,
    samples BIGINT, function_name VARCHAR,
    off_cpu_ns DOUBLE, is_told BOOLEAN
);
