-- The iterations of a loop are steps; what is launched before, between and after its runs are pieces of their own. A
-- first iteration that runs other kernels or grids than most, and more than twice their GPU time, is not a step but a
-- prefill. The host interval of a piece begins with its first launch call. The last iteration before other work lasts
-- as long after its operations as the others do, or until that work begins.
CREATE OR REPLACE TABLE internal.step_pieces AS
WITH iterations AS (
    SELECT
        NOT (
            is_different AND iteration = 0 AND gpu_ns > 2 * quantile_cont(gpu_ns, 0.5) OVER ()
        ) AS is_step,
        host_start_ns, host_end_ns, start_ns, end_ns,
        lead(host_start_ns) OVER (ORDER BY host_start_ns) IS NULL AS is_open, operations AS ops, gpu_ns,
        CASE WHEN lead(run) OVER (ORDER BY host_start_ns) <> run THEN done_ns END AS done_before_other_ns
    FROM facts.loop_iterations
    WHERE loop = $loop
),
usual_rest AS (
    SELECT greatest(coalesce(median(end_ns - done_ns), 0), 0)::BIGINT AS rest_ns
    FROM facts.loop_iterations
    WHERE
        loop = $loop
        AND (run, iteration + 1) IN (SELECT (run, iteration) FROM facts.loop_iterations WHERE loop = $loop)
),
-- The host intervals outside of the iterations.
rests AS (
    SELECT host_end_ns AS host_start_ns, lead(host_start_ns) OVER (ORDER BY host_start_ns) AS host_end_ns
    FROM (
        SELECT -9223372036854775807 AS host_start_ns, -9223372036854775807 AS host_end_ns
        UNION ALL
        SELECT host_start_ns, host_end_ns FROM iterations
        UNION ALL
        SELECT 9223372036854775807, NULL
    )
    QUALIFY host_end_ns < lead(host_start_ns) OVER (ORDER BY host_start_ns)
),
windows AS (
    SELECT host_start_ns AS start_ns, host_end_ns AS end_ns FROM rests
),
operations AS (
    SELECT coalesce(call_ns, start_ns) AS start_ns, start_ns AS op_ns, end_ns AS op_end_ns FROM internal.step_launched
),
rest_work AS (
    SELECT
        window_ns, any_value(window_end_ns) AS window_end_ns, min(op_ns) AS start_ns, max(op_end_ns) AS end_ns,
        min(start_ns) AS host_start_ns, count(*) AS ops, sum(op_end_ns - op_ns)::BIGINT AS gpu_ns
    FROM begun_in('operations', 'windows')
    GROUP BY window_ns
),
pieces AS (
    FROM iterations
    UNION ALL BY NAME
    SELECT
        false AS is_step, greatest(window_ns, -9223372036854775807) AS host_start_ns, window_end_ns AS host_end_ns,
        start_ns, end_ns, false AS is_open, ops, gpu_ns
    FROM rest_work
)
SELECT
    row_number() OVER (ORDER BY host_start_ns) - 1 AS piece,
    is_step,
    $process::BIGINT AS process_id,
    (SELECT any_value(thread_id) FROM api_calls AS a WHERE a.process_id = $process AND a.start_ns = p.host_start_ns)
        AS thread_id,
    host_start_ns, host_end_ns, start_ns,
    CASE
        WHEN done_before_other_ns IS NULL THEN greatest(start_ns, end_ns)
        WHEN is_next_step THEN greatest(start_ns, next_ns)
        ELSE greatest(start_ns, least(next_ns, greatest(done_before_other_ns, end_ns) + rest_ns))
    END AS end_ns,
    is_open, ops, gpu_ns
FROM (
    SELECT
        *, lead(start_ns) OVER (ORDER BY host_start_ns) AS next_ns,
        lead(is_step) OVER (ORDER BY host_start_ns) AS is_next_step
    FROM pieces
) AS p, usual_rest
