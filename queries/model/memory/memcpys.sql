/*
description = "One row per memory copy that the GPU executed."
[columns]
start_ns = "When the copy started on the GPU"
end_ns = "When the copy ended on the GPU"
copy_kind = """H2D, D2H, D2D, P2P, H2H, to and from arrays (A), UM for unified memory; staged P2P: one half of a copy
    between GPUs through host memory, with all of its bytes, but only the time of the last MiB"""
size_bytes = "Bytes copied"
source_memory = "Memory that was read: pageable, pinned, device, array, managed"
target_memory = "Memory that was written: pageable, pinned, device, array, managed"
source_device_id = "Device that was read"
target_device_id = "Device that was written"
migration_cause = """Why unified memory moved: page fault, prefetch (requested by the program), speculative (by the
    driver), eviction, access counters, unknown; NULL for all other copies"""
graph_node_id = "CUDA graph node that ran the copy; NULL or 0 outside graphs"
copy_count = "Copies in this row: more than 1 for batched copies"
*/
SELECT
    m.start AS start_ns,
    m."end" AS end_ns,
    duration(m.start, m."end") AS duration_ns,
    CASE
        WHEN w.kinds[m.copyKind] IN ('H2D', 'D2H') AND w.memories[m.srcKind] = 'device'
            AND w.memories[m.dstKind] = 'device' THEN 'staged P2P'
        ELSE coalesce(w.kinds[m.copyKind], 'kind ' || m.copyKind)
    END AS copy_kind,
    m.bytes AS size_bytes,
    coalesce(w.memories[m.srcKind], 'memory ' || m.srcKind) AS source_memory,
    coalesce(w.memories[m.dstKind], 'memory ' || m.dstKind) AS target_memory,
    m.deviceId AS device_id,
    m.streamId AS stream_id,
    m.contextId AS context_id,
    pid_of(m.globalPid) AS process_id,
    m.correlationId AS correlation_id,
    m.srcDeviceId AS source_device_id,
    m.dstDeviceId AS target_device_id,
    CASE WHEN w.kinds[m.copyKind] LIKE 'UM %' THEN coalesce(w.causes[m.migrationCause], 'unknown') END
        AS migration_cause,
    m.graphNodeId AS graph_node_id,
    coalesce(m.copyCount, 1) AS copy_count
FROM raw.CUPTI_ACTIVITY_KIND_MEMCPY AS m
CROSS JOIN facts.copy_words AS w;
