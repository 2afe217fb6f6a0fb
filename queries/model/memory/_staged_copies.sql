/*
description = """One row per half of a copy between two GPUs that goes through host memory, as without peer access and
    above 1 MiB: D2H of one GPU and H2D of the other, with one correlation id. Each has all bytes of the copy, but the
    time of its last piece only (docs/evidence/odd.md)."""
[columns]
device_id = "CUDA device number of the GPU of this half"
stream_id = "CUDA stream of this half"
start_ns = "When the last piece of this half started"
is_source = "Whether the GPU of this half is read, and not written"
*/
-- Device memory on both sides distinguishes them from copies from and to the host.
SELECT
    pid_of(m.globalPid) AS process_id,
    m.correlationId AS correlation_id,
    m.deviceId AS device_id,
    m.streamId AS stream_id,
    m.start AS start_ns,
    k.word = 'D2H' AS is_source
FROM unscoped.CUPTI_ACTIVITY_KIND_MEMCPY AS m
JOIN facts.enum_words AS k ON k.enum = 'copy kind' AND k.id = m.copyKind AND k.word IN ('D2H', 'H2D')
JOIN facts.enum_words AS s ON s.enum = 'memory' AND s.id = m.srcKind AND s.word = 'device'
JOIN facts.enum_words AS d ON d.enum = 'memory' AND d.id = m.dstKind AND d.word = 'device'
WHERE m.bytes > 1048576;
