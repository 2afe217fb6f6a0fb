-- nsys records Python's own call stack of a CUDA call (--python-backtrace=cuda) as an NVTX mark with a payload at the
-- start of the call. Samples of Python (--python-sampling) are such marks too. They are not read, because a thread that
-- computes in Python is sampled half as often as one that waits.
SELECT pid_of(n.globalTid) AS process_id, tid_of(n.globalTid) AS thread_id, n.start AS start_ns, n.binaryData AS payload
FROM raw.NVTX_EVENTS AS n
JOIN (
    SELECT DISTINCT domainId, pid_of(globalTid) AS process_id
    FROM raw.NVTX_EVENTS
    WHERE eventType = 75 AND text = 'Python Backtrace on CUDA'
) AS d ON d.domainId = n.domainId AND d.process_id = pid_of(n.globalTid)
WHERE n.binaryData IS NOT NULL AND n.eventType = 34
