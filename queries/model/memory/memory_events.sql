/*
description = "One row per allocation or deallocation that nsys saw; only with --cuda-memory-usage=true."
[columns]
start_ns = "When the memory was allocated or freed; 0 for memory that existed before the capture"
operation = "allocation or deallocation"
size_bytes = "Bytes allocated or freed"
address = "Virtual address of the memory"
memory = "device, pinned, managed, array, device static …"
name = "Variable's name, for static memory"
pool_address = "Memory pool that it came from"
pool_bytes = "The pool's size after the event"
pool_used_bytes = "The part of the pool in use"
stream_id = "CUDA stream, for stream-ordered allocation"
*/
SELECT
    m.start AS start_ns,
    coalesce(o.word, 'event ' || m.memoryOperationType) AS operation,
    m.bytes AS size_bytes,
    m.address,
    coalesce(k.word, 'memory ' || m.memKind) AS memory,
    m.name,
    m.localMemoryPoolAddress AS pool_address,
    m.localMemoryPoolSize AS pool_bytes,
    m.localMemoryPoolUtilizedSize AS pool_used_bytes,
    m.deviceId AS device_id,
    m.streamId AS stream_id,
    m.contextId AS context_id,
    pid_of(m.globalPid) AS process_id,
    m.correlationId AS correlation_id
FROM raw.CUDA_GPU_MEMORY_USAGE_EVENTS AS m
LEFT JOIN facts.enum_words AS o ON o.enum = 'memory event' AND o.id = m.memoryOperationType
LEFT JOIN facts.enum_words AS k ON k.enum = 'memory' AND k.id = m.memKind;
