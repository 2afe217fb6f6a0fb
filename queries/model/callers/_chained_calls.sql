/*
description = "The CUDA calls that have a call chain; a call may have one in a separate row."
[columns]
correlation_id = "The call's id"
chain_id = "Id of the chain; below zero for chains from Python"
is_separate_row = "Whether the chain is in a separate row, which has no times of the call"
*/
-- nsys 2022 has the chain of a call in a separate row (event class 67) with the call's id. A backtrace that Python
-- itself gave takes precedence.
SELECT
    pid_of(c.globalTid) AS process_id, c.correlationId AS correlation_id,
    coalesce(p.chain_id, c.callchainId) AS chain_id,
    c.eventClass = 67 AS is_separate_row
FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME AS c
LEFT JOIN facts.python_chains AS p ON p.start_ns = c.start AND p.thread_id = tid_of(c.globalTid)
    AND p.process_id = pid_of(c.globalTid)
WHERE coalesce(p.chain_id, c.callchainId) IS NOT NULL AND c.correlationId IS NOT NULL;
