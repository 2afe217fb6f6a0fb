-- Intervals in windows. Two windows, and four intervals of one GPU:
--
--     windows            |<------ 1 ------>|       |<------ 2 ------>|
--     intervals     ========   ====     ==============    ===
--
--     begun_in                 ====     ==============    ===          begins in a window; not cut
--     whole_in                 ====                       ===          lies entirely in a window
--     cut_in             ===            ===        ===                 parts of those that an edge cuts
--     cut_to             ===   ====     ===        ===    ===          all parts in windows: whole_in and cut_in
--
-- The column window_ns, the start of the window, tells the parts of one interval apart. A window contains its start,
-- but not its end.

-- Each of `events` (start_ns and more) that begins in one of `windows` (start_ns, end_ns and more; disjoint), with that
-- window: its times are window_ns and window_end_ns. Events and windows are joined by time bucket, about eight buckets
-- per window; an ASOF join would sort all events and hold them in memory. The first and the last window may be
-- unbounded.
CREATE MACRO begun_in(events, windows) AS TABLE
WITH nonempty_windows AS MATERIALIZED (
    FROM query_table(windows) WHERE end_ns > start_ns
),
time_span AS MATERIALIZED (
    SELECT
        min(at_ns) AS from_ns, max(at_ns) AS until_ns,
        coalesce(min(at_ns) FILTER (abs(at_ns) < 9223372036854775807), 0) AS first_ns,
        coalesce(max(at_ns) FILTER (abs(at_ns) < 9223372036854775807), 0) AS last_ns,
        greatest(1, (last_ns - first_ns) // (4 * count(*))) AS bucket_ns
    FROM (SELECT unnest([start_ns, end_ns]) AS at_ns FROM nonempty_windows)
    HAVING count(*) > 0
)
SELECT e.* EXCLUDE (bucket), w.* EXCLUDE (bucket) RENAME (start_ns AS window_ns, end_ns AS window_end_ns)
FROM (
    SELECT
        e.*,
        CASE
            WHEN start_ns >= from_ns AND start_ns < until_ns
                THEN greatest(first_ns, least(last_ns, start_ns)) // bucket_ns
        END AS bucket
    FROM query_table(events) AS e CROSS JOIN time_span
) AS e
JOIN (
    SELECT
        w.*,
        unnest(range(
            greatest(first_ns, least(last_ns, start_ns)) // bucket_ns,
            greatest(first_ns, least(last_ns, end_ns)) // bucket_ns + 1
        )) AS bucket
    FROM nonempty_windows AS w CROSS JOIN time_span
) AS w USING (bucket)
WHERE e.start_ns >= w.start_ns AND e.start_ns < w.end_ns;

-- The GPU intervals (gpu_id, start_ns, end_ns and more; disjoint for each GPU) that lie entirely in one of `windows`
-- (start_ns, end_ns; disjoint). window_ns is the start of the window.
CREATE MACRO whole_in(intervals, windows) AS TABLE
WITH window_times AS (
    SELECT start_ns, end_ns FROM query_table(windows)
)
SELECT * EXCLUDE (window_end_ns)
FROM begun_in(intervals, 'window_times')
WHERE end_ns <= window_end_ns;

-- Each of `intervals` (start_ns, end_ns and more) with each of `windows` (start_ns, end_ns; disjoint) that it overlaps:
-- the times of this are window_ns and window_end_ns. Intervals and windows are joined by time bucket. Of the buckets in
-- which both lie, the first one counts. The buckets of an interval end with the last window: it may last a thousand
-- times as long as the windows. Most intervals lie in one bucket, and need no list of buckets.
CREATE MACRO overlapping(intervals, windows) AS TABLE
WITH nonempty_windows AS MATERIALIZED (
    SELECT start_ns, end_ns FROM query_table(windows) WHERE end_ns > start_ns
),
time_span AS MATERIALIZED (
    SELECT
        greatest(1, (max(end_ns) - min(start_ns)) // (8 * count(*))) AS bucket_ns, min(start_ns) AS from_ns,
        max(end_ns) AS until_ns
    FROM nonempty_windows HAVING count(*) > 0
),
bucketed_intervals AS NOT MATERIALIZED (
    SELECT
        i.*, greatest(start_ns, from_ns) // bucket_ns AS first_bucket, first_bucket AS bucket,
        least(end_ns, until_ns) // bucket_ns AS last_bucket
    FROM query_table(intervals) AS i CROSS JOIN time_span
)
SELECT i.* EXCLUDE (first_bucket, bucket, last_bucket), w.start_ns AS window_ns, w.end_ns AS window_end_ns
FROM (
    FROM bucketed_intervals
    UNION ALL
    SELECT * REPLACE (unnest(range(first_bucket + 1, last_bucket + 1)) AS bucket)
    FROM bucketed_intervals
    WHERE last_bucket > first_bucket
) AS i
JOIN (
    SELECT
        w.*, start_ns // bucket_ns AS first_bucket,
        unnest(range(start_ns // bucket_ns, end_ns // bucket_ns + 1)) AS bucket
    FROM nonempty_windows AS w CROSS JOIN time_span
) AS w USING (bucket)
WHERE i.start_ns < w.end_ns AND i.end_ns > w.start_ns AND bucket = greatest(i.first_bucket, w.first_bucket);

-- The parts of intervals that are cut by the edge of a window, one row per part. Such intervals are few, and only they
-- are joined with windows: each lies in several buckets, or in one that has an edge.
CREATE MACRO cut_in(intervals, windows) AS TABLE
WITH edges AS MATERIALIZED (
    SELECT DISTINCT unnest([start_ns, end_ns]) AS at_ns FROM query_table(windows) WHERE end_ns > start_ns
),
edge_size AS MATERIALIZED (
    SELECT greatest(1, (max(at_ns) - min(at_ns)) // (8 * count(*))) AS size_ns FROM edges HAVING count(*) > 0
),
cut_intervals AS NOT MATERIALIZED (
    SELECT i.*
    FROM query_table(intervals) AS i CROSS JOIN edge_size
    WHERE start_ns // size_ns < end_ns // size_ns
        OR start_ns // size_ns IN (SELECT at_ns // size_ns FROM edges CROSS JOIN edge_size)
)
SELECT * EXCLUDE (window_end_ns) REPLACE (
    greatest(start_ns, window_ns) AS start_ns, least(end_ns, window_end_ns) AS end_ns
)
FROM overlapping('cut_intervals', windows)
WHERE start_ns < window_ns OR end_ns > window_end_ns;

-- The parts of intervals that lie in windows: entire intervals and cut ones.
CREATE MACRO cut_to(intervals, windows) AS TABLE
SELECT * EXCLUDE (window_end_ns) REPLACE (
    greatest(start_ns, window_ns) AS start_ns, least(end_ns, window_end_ns) AS end_ns
)
FROM overlapping(intervals, windows);
