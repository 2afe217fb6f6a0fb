/*
description = "Processes that nsys saw, including those that did not use CUDA."
[columns]
name = "Name of the executable"
*/
SELECT DISTINCT coalesce(pid_of(globalPid), pid) AS process_id, name
FROM raw.PROCESSES;
