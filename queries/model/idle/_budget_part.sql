/* parameters = ["cause", "host"] */
-- The part of step_budget that idle time belongs to, by its cause and host in `gpu_idle`.
CASE
    WHEN host = 'sync calls' THEN 'sync'
    WHEN host = 'blocking copies' THEN 'copy'
    WHEN cause = 'starved' OR host = 'launch call in progress' THEN 'launch'
    ELSE cause
END;
