-- Why a trace has launch calls but no kernels: the kernels of successful calls are lost, or all calls returned errors.
SELECT
    EXISTS (FROM _unrecorded WHERE what = 'kernels') AS lacks_kernels,
    EXISTS (FROM _call_counts WHERE call_group = 'launch')
        AND NOT EXISTS (
            FROM outer_api_calls
            WHERE call_group IN ('launch', 'graph launch') AND return_value = 0
        ) AS fails_to_launch
