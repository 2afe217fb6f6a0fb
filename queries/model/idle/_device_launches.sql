/*
description = "The kernels that a graph launched itself, on the device: the bodies of conditional nodes, such as WHILE."
[columns]
start_ns = "When the kernel started"
call_ns = "When the last launch call of a graph before that began"
returned_ns = "When the last launch call of a graph before the kernel returned"
*/
FROM facts.device_launches;
