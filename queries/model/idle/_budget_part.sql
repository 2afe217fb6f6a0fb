-- Which part of step_budget idle time is in, by what `gpu_idle` says of it.
CREATE MACRO _budget_part(cause, host) AS CASE
    WHEN host = 'sync calls' THEN 'sync'
    WHEN host = 'blocking copies' THEN 'copy'
    WHEN cause = 'starved' OR host = 'launch call under way' THEN 'launch'
    ELSE cause
END;
