/* parameters = ["ranges"] */
-- Ranges (group_id, thread, start_ns, close_ns) with those of one group that overlap on a thread joined into one: work
-- in two of them counts once.
SELECT group_id, thread, min(start_ns) AS start_ns, max(close_ns) AS close_ns
FROM (
    SELECT
        *,
        sum(begins) OVER (
            PARTITION BY group_id, thread ORDER BY start_ns, close_ns ROWS UNBOUNDED PRECEDING
        ) AS stretch
    FROM (
        SELECT
            group_id, thread, start_ns, close_ns,
            CASE WHEN start_ns <= max(close_ns) OVER (
                PARTITION BY group_id, thread
            ORDER BY start_ns, close_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) THEN 0 ELSE 1 END AS begins
        FROM query_table(ranges)
    )
)
GROUP BY group_id, thread, stretch;
