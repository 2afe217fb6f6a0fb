-- What is found about the critical path. The views `critical_path` and `critical_path_run` say what it means.
CREATE TABLE IF NOT EXISTS facts.critical_path (
    kind VARCHAR, name VARCHAR, nvtx_path VARCHAR, path_ns DOUBLE, total_ns DOUBLE, saved_ns DOUBLE,
    half_saved_ns DOUBLE,
    takes_over VARCHAR
);

CREATE TABLE IF NOT EXISTS facts.critical_path_run (
    reason VARCHAR, steps BIGINT, first_step BIGINT, measured_ns DOUBLE, played_ns DOUBLE
)
