/*
description = "The CUDA API calls that were made inside another call of the same thread."
stored = true
needs = "_overlapping_threads"
progress = "API calls"
[columns]
start_ns = "When the host entered the call"
end_ns = "When the call returned"
api = "runtime, driver or other, as in `api_calls`"
correlation_id = "Id that CUPTI gives the call, as in `api_calls`"
*/
-- nsys usually leaves out the calls that a call itself makes, but not always. Threads on which runs of calls overlap
-- are checked call by call. Threads on which a call begins before the previous one has ended get the complete check: in
-- the order in which calls begin, an outer call ends later than all calls before it.
WITH nesting_threads AS (
    SELECT DISTINCT pid_of(thread) AS process_id, tid_of(thread) AS thread_id
    FROM (
        SELECT thread, start, lag(thread) OVER () AS last_thread, lag(close) OVER () AS last_close
        FROM (
            SELECT globalTid AS thread, start, greatest(start + 1, "end") AS close
            FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME
            WHERE eventClass IS DISTINCT FROM 67 AND globalTid IN (SELECT thread FROM _overlapping_threads)
            ORDER BY thread, start
        )
    )
    WHERE last_thread = thread AND last_close > start
)
SELECT process_id, thread_id, start_ns, end_ns, api, correlation_id
FROM api_calls SEMI JOIN nesting_threads USING (process_id, thread_id)
-- A call that begins where the other one ends is not inside it.
QUALIFY greatest(start_ns + 1, end_ns) <= max(end_ns) OVER (
    PARTITION BY process_id, thread_id ORDER BY start_ns, end_ns DESC, api DESC, correlation_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
);
