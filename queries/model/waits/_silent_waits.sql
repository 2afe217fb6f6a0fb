/*
description = "Whether the program makes streams wait for what has no row on the GPU. One row."
[columns]
value_call = "The call that lets a stream wait for a value in memory; NULL without"
has_functions = "Whether functions on the host run between operations"
are_functions = "Whether functions on the host run between operations, and no stream waits for a value"
are_none = "Whether there is neither"
*/
SELECT
    min(name) FILTER (name SIMILAR TO 'cuStreamWaitValue.*') AS value_call,
    coalesce(bool_or(name SIMILAR TO 'cu(da)?(LaunchHostFunc|StreamAddCallback).*'), false) AS has_functions,
    value_call IS NULL AND has_functions AS are_functions,
    value_call IS NULL AND NOT has_functions AS are_none
FROM _call_counts;
