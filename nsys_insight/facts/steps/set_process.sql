-- Record that all operations of the process are in `internal.step_launched`.
INSERT INTO internal.launched_process VALUES ($process)
