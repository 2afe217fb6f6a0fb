/*
description = """Threads of which an API call may begin before the one before it has ended: those to look at for calls
    inside others."""
stored = true
progress = "API calls"
[columns]
thread = "The thread as nsys packs it, with its process: `globalTid`"
*/
-- Threads on which a call may begin before the previous one has ended. In storage order, calls form long runs of one
-- thread, in which each call begins soon after the previous one has ended. One scan without a sort finds these runs.
-- Then only the start and end of each run need to be compared, in any order of the runs.
WITH calls AS (
    SELECT globalTid AS thread, start, greatest(start + 1, "end") AS close
    FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME WHERE eventClass IS DISTINCT FROM 67
),
-- Windows without an order keep no rows. The last call is a run of its own.
calls_in_order AS (
    SELECT
        *, lag(thread) OVER () AS last_thread, lag(close) OVER () AS last_close, lead(thread) OVER () IS NULL AS is_last
    FROM calls
),
-- A gap of a millisecond splits a run: another part of the calls may be stored elsewhere.
runs AS (
    SELECT thread, start, coalesce(lead(last_close) OVER (), close) AS close
    FROM calls_in_order
    WHERE is_last OR last_thread IS DISTINCT FROM thread OR (start - last_close BETWEEN 0 AND 1000000) IS NOT TRUE
)
SELECT DISTINCT thread
FROM (
    SELECT thread, start, lag(thread) OVER () AS last_thread, lag(close) OVER () AS last_close
    FROM (FROM runs ORDER BY thread, start)
)
WHERE last_thread = thread AND last_close > start;
