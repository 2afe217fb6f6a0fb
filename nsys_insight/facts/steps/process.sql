-- The process whose operations are in `internal.step_launched`.
CREATE TABLE IF NOT EXISTS internal.launched_process (process_id BIGINT);

FROM internal.launched_process
