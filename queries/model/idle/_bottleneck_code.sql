/* parameters = ["part", "host"] */
-- The row of the report host that a part of step_budget belongs to.
CASE
    WHEN part = 'sync' AND host = 'D2H copy' THEN 'd2h_sync'
    WHEN part = 'sync' THEN 'other_wait'
    WHEN part = 'copy' AND host IS NOT NULL THEN 'blocking_copy'
    WHEN part = 'allocation' THEN 'allocation'
    WHEN part = 'launch' AND host IN ('CPU work', 'managed memory') THEN 'cpu_work'
    WHEN part = 'launch' AND host = 'MPI calls' THEN 'mpi_call'
    WHEN part = 'launch' AND host = 'API calls' THEN 'other_call'
    WHEN part = 'launch' THEN 'launch_call'
END;
