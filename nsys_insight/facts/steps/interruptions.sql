-- The work between steps: what is launched after a step and before the next one.
INSERT INTO facts.step_interruptions BY NAME
WITH pieces AS (
    SELECT
        *, max(CASE WHEN is_step THEN end_ns END) OVER (ORDER BY piece) AS step_end_ns,
        min(CASE WHEN is_step THEN start_ns END) OVER (ORDER BY piece ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
            AS next_step_ns
    FROM internal.step_pieces
),
interruptions AS (
    SELECT piece, host_start_ns AS start_ns, host_end_ns AS end_ns, ops, gpu_ns, step_end_ns, next_step_ns
    FROM pieces
    WHERE NOT is_step AND step_end_ns IS NOT NULL AND next_step_ns IS NOT NULL
),
operations AS (
    SELECT coalesce(call_ns, start_ns) AS start_ns, end_ns - start_ns AS duration_ns, kind, name_id
    FROM internal.step_launched
),
work AS (
    SELECT window_ns, kind, name_id, sum(duration_ns) AS gpu_ns
    FROM begun_in('operations', 'interruptions')
    GROUP BY ALL
),
largest AS (
    SELECT window_ns, arg_max(coalesce(name, if(kind = 'memset', kind, kind || ' copy')), (gpu_ns, name)) AS operation
    FROM work
    LEFT JOIN kernel_names USING (name_id)
    GROUP BY window_ns
)
SELECT
    i.step_end_ns AS start_ns, greatest(i.next_step_ns, i.step_end_ns) AS end_ns,
    greatest(i.next_step_ns - i.step_end_ns, 0) AS duration_ns, i.ops AS operations, i.gpu_ns, l.operation
FROM interruptions AS i
LEFT JOIN largest AS l ON l.window_ns = i.start_ns
