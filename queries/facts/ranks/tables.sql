-- What is found about the ranks of a run, all traces together. The views of the topic `ranks` say what it means.
CREATE TABLE IF NOT EXISTS facts.ranks (
    rank BIGINT, trace VARCHAR, process_id BIGINT, device_id BIGINT, gpu_id BIGINT, nccl_kernels BIGINT, nccl_ns BIGINT,
    clock_offset_ns DOUBLE, clock_drift_ppm DOUBLE, host_number BIGINT, gpu VARCHAR
);

CREATE TABLE IF NOT EXISTS facts.collectives (
    collective BIGINT, communicator VARCHAR, operation VARCHAR, bytes BIGINT, ranks BIGINT, seen_ranks BIGINT,
    step BIGINT,
    start_ns BIGINT, arrived_ns BIGINT, end_ns BIGINT, skew_ns BIGINT, transfer_ns BIGINT, waiting_ns BIGINT,
    last_rank BIGINT
);

CREATE TABLE IF NOT EXISTS facts.collective_ranks (
    collective BIGINT, rank BIGINT, start_ns BIGINT, end_ns BIGINT, waiting_ns BIGINT
);

CREATE TABLE IF NOT EXISTS facts.messages (
    communicator VARCHAR, sender BIGINT, receiver BIGINT, bytes BIGINT, sent_ns BIGINT, sent_end_ns BIGINT,
    received_ns BIGINT,
    received_end_ns BIGINT, is_alone BOOLEAN
);

CREATE TABLE IF NOT EXISTS facts.rank_steps (
    step BIGINT, rank BIGINT, start_ns BIGINT, trace_start_ns BIGINT, wall_ns BIGINT, busy_ns BIGINT, waiting_ns BIGINT,
    transfer_ns BIGINT, idle_ns BIGINT,
    late_ns BIGINT
);

CREATE TABLE IF NOT EXISTS facts.rank_delays (
    rank BIGINT, cause VARCHAR, more_busy_ns DOUBLE, more_idle_ns DOUBLE, busy_ratio DOUBLE, host VARCHAR, place VARCHAR
);

CREATE TABLE IF NOT EXISTS facts.rank_run (
    verdict VARCHAR, unit VARCHAR, steps BIGINT, ranks BIGINT, error_ns BIGINT, numbered_by VARCHAR, clock VARCHAR,
    missing VARCHAR,
    unmatched VARCHAR, doubled VARCHAR, pipeline VARCHAR,
    compared_with VARCHAR, stages BIGINT, stage_messages BIGINT, bubble_pct DOUBLE
);
