-- Which steps are steady, and why the others are outliers. A step is an outlier if its step time differs from the
-- median by more than a tenth, and by more than five standard deviations. The median absolute deviation estimates the
-- latter (1.4826 is the ratio of the two for a normal distribution).
-- A range that begins after the last CUDA call and operation is no step: nsys has lost what happened in it, or the
-- program did something else.
-- A step is warm-up if it begins in a range with such a name. Steps before the first typical one are warm-up. So is a
-- step, and all before it, that lasts more than twice as long as any later one, if it is among the first five and the
-- first quarter of at least six steps. A step with less than half of the usual operations is not typical.
INSERT INTO facts.steps BY NAME
-- Ranges that are named warm-up, with the latest end so far.
WITH warm_ups AS (
    SELECT start_ns, max(end_ns) OVER (ORDER BY start_ns, end_ns) AS end_ns
    FROM nvtx_ranges
    WHERE process_id = $process AND is_warm_up_name(name) AND end_ns > start_ns
),
trace_time AS (
    SELECT min(start_ns) AS trace_start_ns, max(end_ns) AS trace_end_ns FROM wall
),
recorded_steps AS (
    SELECT
        t.piece, t.is_step, t.is_open, t.ops, t.gpu_ns, t.duration_ns, t.gpu_busy_ns, t.gpu_idle_ns, t.kernels,
        t.launch_calls, t.mallocs + t.frees AS allocations, t.sync_points, t.host_start_ns,
        t.is_step AND t.ops = 0 AND t.api_ns = 0 AND t.start_ns >= w.trace_end_ns AS is_unrecorded
    FROM internal.step_totals AS t CROSS JOIN trace_time AS w
),
totals AS (
    SELECT
        t.*, t.is_step AND coalesce(t.host_start_ns < w.end_ns, false) AS is_called_warm_up,
        max(duration_ns) FILTER (is_step AND NOT is_open AND NOT is_unrecorded) OVER (
            ORDER BY piece ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        ) AS longest_later_ns
    FROM recorded_steps AS t
    ASOF LEFT JOIN warm_ups AS w ON w.start_ns <= t.host_start_ns
),
-- What a usual step takes, and how much it may differ.
step_medians AS (
    SELECT
        count(*) AS steps,
        quantile_cont(duration_ns, 0.5) AS duration_ns,
        greatest(0.1 * quantile_cont(duration_ns, 0.5), 5 * 1.4826 * mad(duration_ns)) AS tolerance_ns,
        quantile_cont(gpu_busy_ns, 0.5) AS gpu_busy_ns,
        quantile_cont(gpu_idle_ns, 0.5) AS gpu_idle_ns,
        quantile_disc(kernels, 0.5) AS kernels,
        quantile_disc(launch_calls, 0.5) AS launch_calls,
        quantile_disc(allocations, 0.5) AS allocations,
        quantile_disc(sync_points, 0.5) AS sync_points,
        quantile_cont(ops, 0.5) AS ops,
        quantile_cont(gpu_ns, 0.5) AS gpu_ns
    FROM totals
    WHERE is_step AND NOT is_open AND NOT is_unrecorded
        AND (NOT is_called_warm_up OR (SELECT bool_and(is_called_warm_up) FROM totals WHERE is_step))
),
-- Steps compared with the medians, with the differences in words.
compared_steps AS (
    SELECT
        t.*,
        CASE
            WHEN is_step THEN count(CASE WHEN is_step THEN 1 END) OVER (ORDER BY piece ROWS UNBOUNDED PRECEDING) - 1
        END AS step,
        is_step AND NOT is_open AND abs(t.duration_ns - u.duration_ns) > u.tolerance_ns AS is_unlike,
        is_step AND t.allocations > u.allocations AS allocates_more,
        is_step AND t.ops < 0.5 * u.ops AS is_partial,
        is_step
            AND greatest(t.gpu_idle_ns - u.gpu_idle_ns, t.gpu_busy_ns - u.gpu_busy_ns)
                > u.tolerance_ns / 2 AS takes_more,
        CASE WHEN is_step THEN concat_ws('; ',
            CASE WHEN abs(t.duration_ns - u.duration_ns) > u.tolerance_ns
                THEN round(t.duration_ns / u.duration_ns, 2) || ' times the median' END,
            CASE WHEN abs(t.gpu_idle_ns - u.gpu_idle_ns) > u.tolerance_ns / 2
                THEN time_text(abs(t.gpu_idle_ns - u.gpu_idle_ns)) || ' '
                    || if(t.gpu_idle_ns > u.gpu_idle_ns, 'more', 'less') || ' idle' END,
            CASE WHEN abs(t.gpu_busy_ns - u.gpu_busy_ns) > u.tolerance_ns / 2
                THEN time_text(abs(t.gpu_busy_ns - u.gpu_busy_ns)) || ' '
                    || if(t.gpu_busy_ns > u.gpu_busy_ns, 'more', 'less') || ' busy' END,
            CASE WHEN t.kernels <> u.kernels THEN 'kernels: ' || t.kernels || ', usually ' || u.kernels END,
            CASE WHEN t.launch_calls <> u.launch_calls AND t.kernels IS NULL
                THEN 'launch calls: ' || t.launch_calls || ', usually ' || u.launch_calls END,
            CASE WHEN t.allocations <> u.allocations
                THEN 'allocations and frees: ' || t.allocations || ', usually ' || u.allocations END,
            CASE
                WHEN t.sync_points <> u.sync_points
                    THEN 'sync points: ' || t.sync_points || ', usually ' || u.sync_points
            END
        ) END AS differs,
        t.ops BETWEEN 0.5 * u.ops AND 2 * u.ops AND t.gpu_ns > u.gpu_ns AS is_like_prefill,
        u.steps
    FROM totals AS t CROSS JOIN step_medians AS u
),
-- Steps with the bounds of the warm-up.
steps_with_limits AS (
    SELECT
        *,
        -- The first typical step ends the warm-up, if it comes in the first half.
        min(step) FILTER (
            is_step AND NOT (allocates_more OR is_partial OR (is_unlike AND duration_ns > 0 AND takes_more))
        )
            OVER (ORDER BY piece ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS first_steady,
        max(step) FILTER (is_step AND duration_ns > 2 * longest_later_ns AND step < least(5, steps / 4) AND steps >= 6)
            OVER (ORDER BY piece ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS last_slow_step
    FROM compared_steps
),
steps_with_phase AS (
    SELECT
        *,
        CASE
            WHEN NOT is_step AND is_like_prefill THEN 'prefill'
            WHEN NOT is_step THEN 'other'
            WHEN is_unrecorded THEN 'tail'
            WHEN is_open AND steps >= 2 THEN 'tail'
            WHEN is_called_warm_up OR step <= last_slow_step THEN 'warm-up'
            WHEN step < first_steady AND first_steady <= steps / 2 THEN 'warm-up'
            ELSE 'steady'
        END AS phase
    FROM steps_with_limits
)
SELECT
    p.step, p.phase, p.phase = 'steady' AND p.is_unlike AS is_outlier,
    CASE
        WHEN p.is_called_warm_up THEN 'in a range named warm-up'
        WHEN p.phase = 'prefill' THEN 'about as many operations as a step, but different ones that take longer'
        WHEN p.phase = 'other' THEN 'not the operations of a step'
        WHEN p.is_unrecorded THEN 'begins after the last CUDA call in the trace'
        WHEN p.phase = 'tail' THEN 'no step follows, so it ends with its last operation'
        WHEN p.phase = 'warm-up' OR p.is_unlike THEN nullif(p.differs, '')
    END AS reason,
    CASE WHEN t.host_start_ns > -9223372036854775807 THEN t.host_start_ns ELSE w.trace_start_ns END AS host_start_ns,
    CASE WHEN t.host_end_ns < 9223372036854775807 THEN t.host_end_ns ELSE w.trace_end_ns END AS host_end_ns,
    t.* EXCLUDE (piece, is_step, is_open, ops, gpu_ns, host_start_ns, host_end_ns)
FROM steps_with_phase AS p
JOIN internal.step_totals AS t USING (piece)
CROSS JOIN trace_time AS w
ORDER BY piece;

CREATE OR REPLACE TABLE internal.step_numbered AS
SELECT n.piece, s.step, s.phase, s.process_id
FROM (SELECT piece, row_number() OVER (ORDER BY piece) - 1 AS step FROM internal.step_pieces WHERE is_step) AS n
JOIN facts.steps AS s USING (step);

INSERT INTO facts.step_calls BY NAME
SELECT s.step, s.process_id, c.thread_id, c.call_group, c.calls, c.time_ns
FROM internal.step_counted AS c
JOIN internal.step_numbered AS s USING (piece);

INSERT INTO facts.step_launches BY NAME
SELECT
    s.step, w.launches AS launch_calls, w.graph_launches, w.launch_queue_ns, coalesce(w.queue_ns, 0) AS queue_ns,
    w.ahead_calls
FROM internal.step_work AS w
JOIN internal.step_numbered AS s USING (piece)
WHERE w.launches > 0 AND s.phase = 'steady'
