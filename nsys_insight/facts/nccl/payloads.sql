-- The NVTX ranges of NCCL that have a payload, in order.
SELECT
    pid_of(n.globalTid) AS process_id, tid_of(n.globalTid) AS thread_id, n.start AS start_ns,
    coalesce(n."end", n.start) AS end_ns,
    coalesce(n.text, s.value, '') AS name, n.binaryData
FROM raw.NVTX_EVENTS AS n
LEFT JOIN raw.StringIds AS s ON s.id = n.textId
WHERE n.binaryData IS NOT NULL AND starts_with(coalesce(n.text, s.value, ''), 'nccl')
ORDER BY ALL
