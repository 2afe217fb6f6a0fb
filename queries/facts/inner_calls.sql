-- nsys mostly leaves out what a call itself calls; but it can be there. As they are stored, calls come in long runs of one thread in
-- which each begins when the one before it has ended, and soon after. To find these takes one look without a sort, and then only where
-- each begins and ends need be compared, whatever order they are stored in. Threads on which runs overlap are looked at call by call;
-- those on which a call begins before the one before it has ended get the full look: there, in the order in which calls begin, an
-- outer call ends later than all before it.
CREATE TABLE IF NOT EXISTS facts.inner_calls (
    process_id BIGINT, thread_id BIGINT, start_ns BIGINT, end_ns BIGINT, api VARCHAR, correlation_id BIGINT
);

INSERT INTO facts.inner_calls BY NAME
WITH calls AS (
    SELECT globalTid AS thread, start, greatest(start + 1, "end") AS close
    FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME WHERE eventClass IS DISTINCT FROM 67
),
-- Windows without an order keep no row. The last call is a run by itself.
stored AS (
    SELECT
        *, lag(thread) OVER () AS last_thread, lag(close) OVER () AS last_close, lead(thread) OVER () IS NULL AS is_last
    FROM calls
),
-- A run with a hole of a millisecond is two: another part of the calls may be stored elsewhere.
runs AS (
    SELECT thread, start, coalesce(lead(last_close) OVER (), close) AS close
    FROM stored
    WHERE is_last OR last_thread IS DISTINCT FROM thread OR (start - last_close BETWEEN 0 AND 1000000) IS NOT TRUE
),
met AS (
    SELECT DISTINCT thread
    FROM (
        SELECT thread, start, lag(thread) OVER () AS last_thread, lag(close) OVER () AS last_close
        FROM (FROM runs ORDER BY thread, start)
    )
    WHERE last_thread = thread AND last_close > start
),
nesting_threads AS (
    SELECT DISTINCT pid_of(thread) AS process_id, tid_of(thread) AS thread_id
    FROM (
        SELECT thread, start, lag(thread) OVER () AS last_thread, lag(close) OVER () AS last_close
        FROM (FROM calls SEMI JOIN met USING (thread) ORDER BY thread, start)
    )
    WHERE last_thread = thread AND last_close > start
)
SELECT process_id, thread_id, start_ns, end_ns, api, correlation_id
FROM api_calls SEMI JOIN nesting_threads USING (process_id, thread_id)
-- One that begins where the other ends is not inside it.
QUALIFY greatest(start_ns + 1, end_ns) <= max(end_ns) OVER (
    PARTITION BY process_id, thread_id ORDER BY start_ns, end_ns DESC, api DESC, correlation_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
);
