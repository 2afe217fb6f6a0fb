-- nsys mostly leaves out what a call itself calls; but it can be there. Sorting all calls by thread and time is cheap, for
-- that is how they are stored (and in order once, they need no window, which would keep them); only threads on which a call
-- begins before the one before it has ended get the full look: there, in the order in which calls begin, an outer call ends
-- later than all before it.
CREATE TABLE IF NOT EXISTS facts.inner_calls (
    process_id BIGINT, thread_id BIGINT, start_ns BIGINT, end_ns BIGINT, api VARCHAR, correlation_id BIGINT
);

INSERT INTO facts.inner_calls BY NAME
WITH in_order AS (
    SELECT globalTid, start, lag(globalTid) OVER () AS last_thread, lag("end") OVER () AS last_end
    FROM (
        SELECT globalTid, start, "end" FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME WHERE eventClass IS DISTINCT FROM 67 ORDER BY globalTid, start
    )
),
nesting_threads AS (
    SELECT DISTINCT pid_of(globalTid) AS process_id, tid_of(globalTid) AS thread_id
    FROM in_order
    WHERE last_thread = globalTid AND last_end > start
)
SELECT process_id, thread_id, start_ns, end_ns, api, correlation_id
FROM api_calls SEMI JOIN nesting_threads USING (process_id, thread_id)
-- One that begins where the other ends is not inside it.
QUALIFY greatest(start_ns + 1, end_ns) <= max(end_ns) OVER (
    PARTITION BY process_id, thread_id ORDER BY start_ns, end_ns DESC, api DESC, correlation_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
);
