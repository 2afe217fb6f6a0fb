-- Which steps are the steady state, and what is the matter with those that are not like the others. A step is like the
-- others if its wall is within a tenth of their median, or within five standard deviations as their median absolute
-- deviation estimates them (1.4826 is the ratio of the two for a normal distribution).
INSERT INTO facts.steps BY NAME
WITH usual AS (
    SELECT
        count(*) AS steps,
        quantile_cont(duration_ns, 0.5) AS duration_ns,
        greatest(0.1 * quantile_cont(duration_ns, 0.5), 5 * 1.4826 * mad(duration_ns)) AS tolerance_ns,
        quantile_cont(gpu_busy_ns, 0.5) AS gpu_busy_ns,
        quantile_cont(gpu_idle_ns, 0.5) AS gpu_idle_ns,
        quantile_disc(kernels, 0.5) AS kernels,
        quantile_disc(launch_calls, 0.5) AS launch_calls,
        quantile_disc(mallocs + frees, 0.5) AS allocations,
        quantile_disc(sync_points, 0.5) AS sync_points,
        quantile_cont(ops, 0.5) AS ops,
        quantile_cont(gpu_ns, 0.5) AS gpu_ns
    FROM internal.step_totals
    WHERE is_step AND NOT is_open
),
compared AS (
    SELECT
        t.*,
        CASE WHEN is_step THEN count(*) FILTER (is_step) OVER (ORDER BY piece ROWS UNBOUNDED PRECEDING) - 1 END AS step,
        is_step AND NOT is_open AND abs(t.duration_ns - u.duration_ns) > u.tolerance_ns AS is_unlike,
        is_step AND t.mallocs + t.frees > u.allocations AS allocates_more,
        is_step AND greatest(t.gpu_idle_ns - u.gpu_idle_ns, t.gpu_busy_ns - u.gpu_busy_ns) > u.tolerance_ns / 2 AS takes_more,
        CASE WHEN is_step THEN concat_ws('; ',
            CASE WHEN abs(t.duration_ns - u.duration_ns) > u.tolerance_ns
                THEN round(t.duration_ns / u.duration_ns, 2) || ' times the median' END,
            CASE WHEN abs(t.gpu_idle_ns - u.gpu_idle_ns) > u.tolerance_ns / 2
                THEN round(abs(t.gpu_idle_ns - u.gpu_idle_ns) / 1e3, 1) || ' µs ' || if(t.gpu_idle_ns > u.gpu_idle_ns, 'more', 'less') || ' idle' END,
            CASE WHEN abs(t.gpu_busy_ns - u.gpu_busy_ns) > u.tolerance_ns / 2
                THEN round(abs(t.gpu_busy_ns - u.gpu_busy_ns) / 1e3, 1) || ' µs ' || if(t.gpu_busy_ns > u.gpu_busy_ns, 'more', 'less') || ' busy' END,
            CASE WHEN t.kernels <> u.kernels THEN 'kernels: ' || t.kernels || ', usually ' || u.kernels END,
            CASE WHEN t.launch_calls <> u.launch_calls AND t.kernels IS NULL
                THEN 'launch calls: ' || t.launch_calls || ', usually ' || u.launch_calls END,
            CASE WHEN t.mallocs + t.frees <> u.allocations
                THEN 'allocations and frees: ' || (t.mallocs + t.frees) || ', usually ' || u.allocations END,
            CASE WHEN t.sync_points <> u.sync_points THEN 'sync points: ' || t.sync_points || ', usually ' || u.sync_points END
        ) END AS differs,
        t.ops BETWEEN 0.5 * u.ops AND 2 * u.ops AND t.gpu_ns > u.gpu_ns AS is_like_prefill,
        u.steps
    FROM internal.step_totals AS t CROSS JOIN usual AS u
),
led AS (
    SELECT
        *,
        -- The first step that is like the others ends the warm-up, if it comes in the first half.
        min(step) FILTER (is_step AND NOT (allocates_more OR (is_unlike AND duration_ns > 0 AND takes_more)))
            OVER (ORDER BY piece ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS first_steady
    FROM compared
),
phased AS (
    SELECT
        *,
        CASE
            WHEN NOT is_step AND is_like_prefill THEN 'prefill'
            WHEN NOT is_step THEN 'other'
            WHEN is_open AND steps >= 2 THEN 'tail'
            WHEN step < first_steady AND first_steady <= steps / 2 THEN 'warm-up'
            ELSE 'steady'
        END AS phase
    FROM led
)
SELECT
    step, phase, phase = 'steady' AND is_unlike AS is_outlier,
    CASE
        WHEN phase = 'prefill' THEN 'about as many operations as a step, but other ones that take longer'
        WHEN phase = 'other' THEN 'not the operations of a step'
        WHEN phase = 'tail' THEN 'no step follows, so its end is that of its last operation'
        WHEN phase = 'warm-up' OR is_unlike THEN nullif(differs, '')
    END AS reason,
    CASE WHEN host_start_ns > -9223372036854775807 THEN host_start_ns ELSE (SELECT min(start_ns) FROM wall) END AS host_start_ns,
    CASE WHEN host_end_ns < 9223372036854775807 THEN host_end_ns ELSE (SELECT max(end_ns) FROM wall) END AS host_end_ns,
    * EXCLUDE (step, phase, host_start_ns, host_end_ns, piece, is_step, is_open, ops, gpu_ns, is_unlike, allocates_more, takes_more, differs, is_like_prefill, steps, first_steady)
FROM phased;

INSERT INTO facts.step_calls BY NAME
SELECT s.step, c.thread_id, c.call_group, c.calls, c.time_ns
FROM internal.step_counted AS c
JOIN internal.step_pieces AS p USING (piece)
JOIN facts.steps AS s ON s.host_start_ns = p.host_start_ns
WHERE p.is_step AND s.step IS NOT NULL;
