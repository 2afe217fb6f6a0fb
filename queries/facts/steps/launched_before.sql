-- Of which process the operations have been found.
CREATE TABLE IF NOT EXISTS internal.launched_process (process_id BIGINT);

FROM internal.launched_process
