/*
description = """One row per copy between two GPUs that went through host memory, as without peer access: nsys has two
    rows for it, D2H and H2D, with one correlation id and all of its bytes each. If it is larger than 1 MiB, they have
    the time of the last piece only (docs/evidence/odd.md)."""
[columns]
process_id = "Operating system's process id"
correlation_id = "Joins with `api_calls`, together with process_id"
size_bytes = "Bytes copied"
source_id = "CUDA device number of the GPU that was read"
source_ns = "When the row of the copy to the host begins"
target_id = "CUDA device number of the GPU that was written"
start_ns = "When the row of the copy to that GPU begins"
end_ns = "When the copy ended"
is_in_pieces = "Whether the trace has the time of the last piece only"
*/
SELECT
    pid_of(m.globalPid) AS process_id,
    m.correlationId AS correlation_id,
    m.bytes AS size_bytes,
    m.deviceId AS source_id,
    m.start AS source_ns,
    t.deviceId AS target_id,
    t.start AS start_ns,
    t."end" AS end_ns,
    m.bytes > 1048576 AS is_in_pieces
FROM unscoped.CUPTI_ACTIVITY_KIND_MEMCPY AS m
JOIN unscoped.CUPTI_ACTIVITY_KIND_MEMCPY AS t
    ON t.correlationId = m.correlationId AND t.globalPid = m.globalPid AND t.deviceId <> m.deviceId
    AND t.bytes = m.bytes
JOIN _enum_words AS k ON k.enum = 'copy kind' AND k.id = m.copyKind AND k.word = 'D2H'
JOIN _enum_words AS l ON l.enum = 'copy kind' AND l.id = t.copyKind AND l.word = 'H2D';
