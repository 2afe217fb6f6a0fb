/*
description = "When contexts held a GPU, one row per turn; only with --gpuctxsw=true."
[columns]
start_ns = "When the turn began"
end_ns = "When the turn ended"
duration_ns = "end_ns - start_ns"
gpu_id = "The machine's GPU"
context_id = "Number of the context in the table of context switches"
*/
-- Tag 8 begins a turn, 7 ends it, as in NVIDIA's documentation of the export. A turn lasts from the first begin after
-- the end before it; turns without an end or a begin are left out.
WITH switches AS (
    SELECT * FROM raw.GPU_CONTEXT_SWITCH_EVENTS WHERE tag IN (7, 8)
    UNION ALL
    SELECT * FROM raw.FECS_EVENTS WHERE tag IN (7, 8)
),
rows_with_turns AS (
    SELECT
        *,
        coalesce(sum((tag = 7)::BIGINT) OVER (
            PARTITION BY gpuId, vmId, globalPid, contextId
            ORDER BY timestamp, seqNo ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS turn
    FROM switches
)
SELECT
    min(timestamp) FILTER (tag = 8) AS start_ns, max(timestamp) FILTER (tag = 7) AS end_ns,
    end_ns - start_ns AS duration_ns, gpuId AS gpu_id, pid_of(globalPid) AS process_id, contextId AS context_id
FROM rows_with_turns
GROUP BY gpuId, vmId, globalPid, contextId, turn
HAVING start_ns IS NOT NULL AND end_ns IS NOT NULL;
