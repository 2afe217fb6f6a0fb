-- What the texts and times of findings depend on. One row.
SELECT
    (SELECT framework FROM frameworks WHERE is_program LIMIT 1) AS framework,
    EXISTS (FROM step_method WHERE steady_count > 0) AS has_steps,
    coalesce((SELECT tokens_per_step FROM step_method), 1)::DOUBLE AS tokens_per_step,
    coalesce((SELECT unit FROM step_method), 'step') AS step_unit,
    EXISTS (FROM _unrecorded WHERE what = 'kernels') AS lacks_kernels,
    NOT EXISTS (FROM _operation_counts WHERE kind IN ('kernel', 'graph'))
        AND EXISTS (FROM _call_counts WHERE call_group = 'launch')
        AND NOT EXISTS (
            FROM outer_api_calls
            WHERE call_group IN ('launch', 'graph launch') AND return_value = 0
        ) AS fails_to_launch
