/*
description = "Whether the program makes streams wait for what has no row on the GPU. One row."
[columns]
value_call = "The call that lets a stream wait for a value in memory; NULL without"
run_in_steps = """Whether the program runs functions on the host between operations in each steady step, or more; NULL
    without steps; false for XLA, which runs them for itself"""
are_functions = "Whether functions on the host run between operations, and no stream waits for a value"
are_none = "Whether there is neither"
*/
SELECT
    value_call,
    functions >= steps AND NOT EXISTS (FROM frameworks WHERE framework = 'jax' AND is_program) AS run_in_steps,
    value_call IS NULL AND functions > 0 AS are_functions,
    value_call IS NULL AND functions = 0 AS are_none
FROM (
    SELECT
        min(name) FILTER (name SIMILAR TO 'cuStreamWaitValue.*') AS value_call,
        coalesce(sum(calls) FILTER (runs_on_host(name)), 0) AS functions
    FROM _call_counts
)
CROSS JOIN (SELECT nullif(count(*), 0) AS steps FROM steps WHERE phase = 'steady');
