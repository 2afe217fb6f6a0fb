-- The ranges of each repetition of phases: where the outermost ranges of a thread are the same names in the same order
-- again and again, such as forward, backward, optimizer, or a single name. Names that occur once, such as that of a
-- setup, do not count. A single name with numbers that come again, such as layer_0 to layer_3, is not that of steps.
-- One row per repetition that is complete, from the start of its first range to the end of its last one.
CREATE OR REPLACE TABLE internal.step_ranges AS
WITH outermost AS (
    SELECT thread_id, name, pattern, start_ns, end_ns
    FROM internal.step_named
    QUALIFY coalesce(max(end_ns) OVER (
        PARTITION BY thread_id ORDER BY start_ns, end_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) <= start_ns, true)
),
repeated AS (
    FROM outermost QUALIFY count(*) OVER (PARTITION BY thread_id, pattern) > 1
),
threads AS (
    SELECT
        thread_id, count(DISTINCT name) AS texts, list(pattern ORDER BY start_ns) AS names,
        list(start_ns ORDER BY start_ns) AS starts, list(end_ns ORDER BY start_ns) AS ends
    FROM repeated
    GROUP BY thread_id
),
-- The shortest period of the names of a thread that comes twice at least.
periods AS (
    SELECT t.*, (
        SELECT min(period)
        FROM range(1, least($most_ranges, len(t.names) // 2) + 1) AS p (period)
        WHERE t.names[period + 1:] = t.names[:-period - 1]
    ) AS period
    FROM threads AS t
),
longest AS (
    FROM periods
    WHERE period > 1 OR (len(names) >= $least_ranges AND (texts = 1 OR texts >= $least_distinct * len(names)))
    ORDER BY ends[-1] - starts[1] DESC, thread_id LIMIT 1
)
SELECT
    c.thread_id,
    CASE
        WHEN c.period <= $most_names THEN array_to_string(c.names[:c.period], ', ')
        ELSE format('{}, ..., {}', c.names[1], c.names[c.period])
    END AS pattern,
    c.starts[(r.repetition - 1) * c.period + 1] AS start_ns,
    c.ends[r.repetition * c.period] AS end_ns
FROM longest AS c, unnest(range(1, len(c.names) // c.period + 1)) AS r (repetition);

SELECT any_value(thread_id) AS thread_id, any_value(pattern) AS pattern, count(*) AS cycles FROM internal.step_ranges
