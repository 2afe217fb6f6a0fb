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
),
-- What the host does then is touching managed memory, of which pages move meanwhile, or anything else.
work AS (
    SELECT 2 * coalesce(sum(time_ns) FILTER (host = 'managed memory'), 0) > sum(time_ns) AS is_managed
    FROM step_budget WHERE part = 'launch' AND host IN ('CPU work', 'managed memory')
)
SELECT
    h.recoverable_ns,
    h.wall_pct,
    CASE WHEN w.is_managed THEN 'The GPU waits while the host works on managed memory' END AS title,
    CASE WHEN w.is_managed THEN 'Let a kernel set up what the GPU works on, and a kernel reduce what the host looks at; or let the host do its part while the GPU works on other data.' END AS action,
    (SELECT nvtx_path FROM longest) AS place,
    concat_ws('; ',
        'the GPU is idle ' || time_text(h.recoverable_ns)
            || CASE WHEN w.is_managed THEN ' while the host touches managed memory, whose pages come and go' ELSE ' while the host is outside of CUDA calls' END,
        (SELECT 'the longest gap, ' || time_text(duration_ns) || ', is between ' || operation_text(before_name) || ' and ' || operation_text(after_name)
            || CASE WHEN host <> 'CPU work' THEN ' (' || host || ')' ELSE '' END FROM longest)
    ) AS evidence
FROM host_report AS h, work AS w
WHERE h.code = 'cpu_work' AND EXISTS (FROM classify_report WHERE part = 'launch' AND see = 'gaps')
