/*
description = "The kernels that a graph launched itself, on the device: the bodies of conditional nodes, such as WHILE."
[columns]
start_ns = "When the kernel started"
process_id = "Operating system's process id"
call_ns = "When the last launch call of a graph before that began"
returned_ns = "When that call returned"
*/
FROM facts.device_launches;
