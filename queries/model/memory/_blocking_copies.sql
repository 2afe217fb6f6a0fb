/*
description = """The API calls that return only when their copy is done, including those that a scope leaves out: copies
    from or to host memory that are not asynchronous by name, and all copies into pageable memory."""
stored = true
[columns]
correlation_id = "Joins with `_host_activity` and `_gpu_work`, together with process_id"
is_read = """Whether the call copied from a GPU into pageable memory: such a call returns after the copy, even if its
    name says Async"""
is_to_host = "Whether the call copied from a GPU to the host"
*/
-- A copy between GPU memories does not block the host, even if its call is synchronous by name. A copy into pageable
-- host memory does. (CUDA Runtime API, "API synchronization behavior".)
WITH copies AS (
    SELECT
        pid_of(m.globalPid) AS process_id, m.correlationId AS correlation_id,
        coalesce(bool_or(k.word = 'D2H' AND d.word = 'pageable'), false) AS is_read,
        bool_or(k.word = 'D2H') AS is_to_host
    FROM unscoped.CUPTI_ACTIVITY_KIND_MEMCPY AS m
    JOIN facts.enum_words AS k ON k.enum = 'copy kind' AND k.id = m.copyKind AND k.word LIKE '%H%'
    LEFT JOIN facts.enum_words AS s ON s.enum = 'memory' AND s.id = m.srcKind
    LEFT JOIN facts.enum_words AS d ON d.enum = 'memory' AND d.id = m.dstKind
    WHERE m.correlationId IS NOT NULL AND NOT coalesce(s.word = 'device' AND d.word = 'device', false)
    GROUP BY ALL
)
SELECT c.process_id, c.correlation_id, c.is_read, c.is_to_host
FROM copies AS c
JOIN _host_activity AS a ON call_of(a.correlation_id, a.process_id) = call_of(c.correlation_id, c.process_id)
JOIN _api_names AS n USING (name_id)
WHERE a.kind = 'api' AND n.call_group = 'copy' AND (c.is_read OR n.name NOT LIKE '%Async%');
