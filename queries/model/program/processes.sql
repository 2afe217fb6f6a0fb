/*
description = "Processes that nsys saw, including those that did not use CUDA."
[columns]
process_id = "Operating system's process id"
name = "Name of the executable"
*/
SELECT DISTINCT coalesce(pid_of(globalPid), pid) AS process_id, name
FROM raw.PROCESSES;
