-- The NVTX ranges of NCCL's sends, receives and exchanges, in order: those of exports without payloads.
SELECT
    pid_of(n.globalTid) AS process_id, tid_of(n.globalTid) AS thread_id, n.start AS start_ns,
    coalesce(n.text, s.value) AS name
FROM raw.NVTX_EVENTS AS n
LEFT JOIN raw.StringIds AS s ON s.id = n.textId
WHERE coalesce(n.text, s.value) IN ('ncclSend', 'ncclRecv', 'ncclAlltoAll')
ORDER BY ALL
