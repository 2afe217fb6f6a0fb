/*
description = "One row: what the steps were found from, and what comes between them. No row when nothing ran on a GPU."
stored = true
progress = "where the steps come from"
[columns]
method = "How steps were found, as in `step_method`; NULL when no steps were found"
is_count = "TRUE where the whole scope is divided by a count"
range_name = "The NVTX ranges that are the steps; NULL where they are none"
step_loop = "The loop whose iterations are the steps; NULL where they are none"
mark = "The operation that begins or ends an iteration; NULL where the steps are no iterations"
unit = "What the times of a step are per: token where a step makes several, else step, iteration or layer"
process_id = "The process whose steps they are"
confidence = "high, medium or low"
reason = "The reason for this confidence"
doubt = "Which other level of the loops may be the step, and why; NULL if the level is clear"
step_count = "Steps found"
misfit_tokens = "Tokens per step where --tokens is not a multiple of the steps; NULL where it is"
interruptions = "How often other work comes between the steps; NULL if it never does"
is_once = "TRUE if it does once"
interruption_ns = "Median time between these steps"
operations = "Median number of operations between these steps"
operation = "The most frequent of the longest operations between them"
shortest_ns = "The shortest steady step, outliers aside; NULL where the longest takes at most twice as long"
longest_ns = "The longest of these"
tenth = """How many steps a tenth of the steady ones is; NULL unless the GPU is busy for 1.1 times as long in the last
    tenth as in the first, or in the first as in the last"""
first_ns = "Median time in which the GPU is busy in a step of the first tenth; NULL where tenth is NULL"
last_ns = "Median time in which the GPU is busy in a step of the last tenth; NULL where tenth is NULL"
*/
-- A table because the notes of most reports read it: as a view it was planned again for each of them.
SELECT
    m.method, m.method = 'count' AS is_count, CASE m.method WHEN 'nvtx' THEN m.pattern END AS range_name,
    CASE WHEN m.method NOT IN ('nvtx', 'count') THEN m.loop END AS step_loop,
    CASE WHEN m.method IN ('graph', 'sequence') THEN m.pattern END AS mark,
    CASE WHEN m.tokens_per_step <> 1 THEN 'token' ELSE coalesce(m.unit, 'step') END AS unit,
    m.process_id, m.confidence, m.reason, m.doubt, m.step_count,
    CASE WHEN m.method <> 'count' AND (m.tokens_per_step < 1 OR m.tokens_per_step <> round(m.tokens_per_step))
        THEN round(m.tokens_per_step, 2)
    END AS misfit_tokens,
    i.interruptions, i.interruptions = 1 AS is_once, i.interruption_ns, i.operations, i.operation, d.shortest_ns,
    d.longest_ns, t.tenth, t.first_ns, t.last_ns
FROM facts.step_method AS m
LEFT JOIN (
    SELECT
        count(*) AS interruptions, median(duration_ns)::BIGINT AS interruption_ns,
        median(operations)::BIGINT AS operations, operation_text(mode(operation)) AS operation
    FROM facts.step_interruptions
    HAVING count(*) > 0
) AS i ON true
LEFT JOIN (
    SELECT min(duration_ns) AS shortest_ns, max(duration_ns) AS longest_ns
    FROM facts.steps WHERE phase = 'steady' AND NOT is_outlier
    HAVING longest_ns > 2 * shortest_ns
) AS d ON true
-- Fewer than 4 steps in a tenth may differ by chance.
LEFT JOIN (
    SELECT
        min(c.steps) // 10 AS tenth, median(gpu_busy_ns) FILTER (10 * number <= c.steps)::BIGINT AS first_ns,
        median(gpu_busy_ns) FILTER (10 * number > 9 * c.steps)::BIGINT AS last_ns
    FROM (
        SELECT gpu_busy_ns, kernels, row_number() OVER (ORDER BY start_ns) AS number
        FROM facts.steps WHERE phase = 'steady'
    ), (SELECT count(*) AS steps FROM facts.steps WHERE phase = 'steady') AS c
    HAVING tenth >= 4 AND min(kernels) = max(kernels) AND greatest(last_ns, first_ns) >= 1.1 * least(first_ns, last_ns)
) AS t ON true;
