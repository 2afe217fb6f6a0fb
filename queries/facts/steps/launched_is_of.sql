-- All operations of the process are there.
INSERT INTO internal.launched_process VALUES ($process)
