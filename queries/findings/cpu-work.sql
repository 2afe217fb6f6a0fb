/*
title = "The GPU waits while the CPU works"
family = "launch"
meaning = """
The host does something else than calling CUDA for longer than launching takes, and the GPU has nothing queued."""
action = """
Do that work later, on another thread, or after launching the next step: files, logging, pre- and post-processing, MPI."""
caveat = """
The next step needs its result; then that work itself must be faster."""
report = "host"
*/
WITH longest AS (
    SELECT g.*
    FROM gaps_report AS g
    ASOF JOIN (
        SELECT start_ns AS step_ns, end_ns AS step_end_ns FROM steps WHERE phase = 'steady'
        UNION ALL
        SELECT start_ns, end_ns FROM wall WHERE NOT EXISTS (FROM steps WHERE phase = 'steady')
    ) AS s ON s.step_ns <= g.start_ns
    WHERE g.start_ns < s.step_end_ns AND g.cause = 'starved'
    ORDER BY g.duration_ns DESC, g.start_ns
    LIMIT 1
)
SELECT
    h.recoverable_ns,
    h.wall_pct,
    (SELECT nvtx_path FROM longest) AS place,
    concat_ws('; ',
        'the GPU is idle ' || time_text(h.recoverable_ns) || ' while the host is outside of CUDA calls',
        (SELECT 'the longest gap, ' || time_text(duration_ns) || ', is between ' || operation_text(before_name) || ' and ' || operation_text(after_name)
            || CASE WHEN host <> 'CPU work' THEN ' (' || host || ')' ELSE '' END FROM longest)
    ) AS evidence
FROM host_report AS h
WHERE h.code = 'cpu_work' AND EXISTS (FROM classify_report WHERE part = 'launch' AND see = 'gaps')
