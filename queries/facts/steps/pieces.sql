-- A piece is a step if most of its operations are those of the typical one, and it is about as long. Where a piece is
-- longer, the step is the part at its mark, and what comes before or after is a piece of its own. A piece's host
-- interval begins with the launch call of its first operation.
CREATE OR REPLACE TABLE internal.step_pieces AS
WITH marked AS (
    SELECT at_ns, count(*) AS ops, lead(at_ns) OVER (ORDER BY at_ns NULLS FIRST) IS NOT NULL AS has_next
    FROM internal.step_cut
    GROUP BY at_ns
),
parts AS (
    SELECT at_ns, min(start_ns) AS part_ns
    FROM (
        SELECT
            c.at_ns, c.start_ns, m.ops, row_number() OVER (PARTITION BY m.at_ns ORDER BY c.start_ns, c.end_ns) AS rank
        FROM internal.step_cut AS c
        JOIN marked AS m ON m.at_ns IS NOT DISTINCT FROM c.at_ns
        WHERE m.ops > 1.25 * $period + 2 AND CASE WHEN $ends THEN m.has_next ELSE m.at_ns IS NOT NULL END
    )
    WHERE rank > CASE WHEN $ends THEN ops - $period ELSE $period END
    GROUP BY at_ns
),
cut AS (
    SELECT
        min(c.start_ns) AS start_ns, max(c.end_ns) AS end_ns, arg_min(c.correlation_id, c.start_ns) AS correlation_id,
        count(*) AS ops, count(*) FILTER (c.is_typical) AS typical_ops, sum(c.end_ns - c.start_ns)::BIGINT AS gpu_ns
    FROM internal.step_cut AS c
    LEFT JOIN parts AS p ON p.at_ns IS NOT DISTINCT FROM c.at_ns
    GROUP BY c.at_ns, coalesce(c.start_ns >= p.part_ns, false)
),
called AS (
    SELECT c.*, coalesce(a.start_ns, c.start_ns) AS host_start_ns, a.thread_id
    FROM cut AS c
    LEFT JOIN (
        SELECT correlation_id, min(start_ns) AS start_ns, arg_min(thread_id, start_ns) AS thread_id
        FROM api_calls
        WHERE process_id = $process AND correlation_id IN (SELECT correlation_id FROM cut)
        GROUP BY correlation_id
    ) AS a ON a.correlation_id = c.correlation_id
)
SELECT
    row_number() OVER (ORDER BY start_ns) - 1 AS piece,
    typical_ops >= 0.7 * greatest(ops, $period) AND ops < 2 * $period + 2 AS is_step,
    $process::BIGINT AS process_id,
    thread_id,
    host_start_ns,
    coalesce(lead(host_start_ns) OVER (ORDER BY start_ns), 9223372036854775807) AS host_end_ns,
    start_ns,
    -- The last one lasts until all is done that was launched in it, on whichever stream.
    coalesce(lead(start_ns) OVER (ORDER BY start_ns), greatest(end_ns, (
        SELECT max(end_ns)
        FROM internal.step_launched
        WHERE coalesce(call_ns, start_ns) >= (SELECT max(host_start_ns) FROM called)
    ))) AS end_ns,
    lead(start_ns) OVER (ORDER BY start_ns) IS NULL AS is_open,
    ops,
    gpu_ns
FROM called
