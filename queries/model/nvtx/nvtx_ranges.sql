/*
description = "One row per NVTX range of the host."
[columns]
start_ns = "When the range was opened"
end_ns = "When the range was closed; NULL when the capture ended first"
name = "Text of the range"
domain = "NVTX domain of the range; empty for the default domain"
domain_id = "Number of the domain in its process; 0 is the default domain"
style = "push/pop (nested, one thread) or start/end (free)"
thread_id = "Thread that opened it"
end_thread_id = "Thread that closed a start/end range"
*/
-- A range without an end lasts until the end of the capture. Its end_ns stays NULL, because the real end is unknown.
-- nsys 2025 ends such a range exactly when the capture ends.
SELECT
    n.start AS start_ns,
    nullif(n."end", c.capture_end) AS end_ns,
    duration(n.start, nullif(n."end", c.capture_end)) AS duration_ns,
    coalesce(n.text, s.value, '') AS name,
    coalesce(d.name, '') AS domain,
    n.domainId AS domain_id,
    CASE n.eventType WHEN 59 THEN 'push/pop' WHEN 70 THEN 'push/pop' ELSE 'start/end' END AS style,
    pid_of(n.globalTid) AS process_id,
    tid_of(n.globalTid) AS thread_id,
    tid_of(n.endGlobalTid) AS end_thread_id
FROM raw.NVTX_EVENTS AS n
CROSS JOIN (SELECT max(duration) AS capture_end FROM raw.ANALYSIS_DETAILS) AS c
LEFT JOIN raw.StringIds AS s ON s.id = n.textId
LEFT JOIN (
    SELECT pid_of(e.globalTid) AS process_id, e.domainId, min(coalesce(e.text, v.value)) AS name
    FROM raw.NVTX_EVENTS AS e LEFT JOIN raw.StringIds AS v ON v.id = e.textId
    WHERE e.eventType = 75
    GROUP BY ALL
) AS d ON d.process_id = pid_of(n.globalTid) AND d.domainId = n.domainId
WHERE n.eventType IN (59, 60, 70, 71);
