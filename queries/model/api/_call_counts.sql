/*
description = "How many API calls each thread made of each function, including calls inside other calls."
stored = true
[columns]
name = "Function, without the suffixes of the linker"
call_group = "Kind of function: launch, sync, copy and others, as in `api_calls`"
calls = "Calls"
*/
-- Group by the id of the name first: hashing the names of millions of calls takes three times as long.
SELECT
    pid_of(c.globalTid) AS process_id, tid_of(c.globalTid) AS thread_id, n.name, n.call_group,
    sum(c.calls)::BIGINT AS calls
FROM (
    SELECT globalTid, nameId, count(*) AS calls
    FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME
    WHERE eventClass IS DISTINCT FROM 67
    GROUP BY ALL
) AS c
LEFT JOIN _api_names AS n ON n.name_id = c.nameId
GROUP BY ALL;
