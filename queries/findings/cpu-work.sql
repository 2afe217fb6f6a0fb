/*
title = "The GPU waits while the CPU works"
family = "launch"
meaning = """
The host does something other than calling CUDA for longer than launches take, and the GPU has nothing queued."""
action = """
Move that work to another thread, or do it after launching the next step: files, logging, pre- and post-processing,
MPI."""
caveat = """
The next step needs its result; then that work itself has to become faster."""
report = "host"
when = "SELECT 1 FROM classify_report WHERE part = 'launch' AND see = 'gaps'"

[params.least_pct]
default = 5.0
help = "Share of the CPU work from which a part of it is named"
*/
WITH longest_gap AS (
    SELECT g.*
    FROM gaps_report AS g
    ASOF JOIN (
        SELECT start_ns AS step_ns, end_ns AS step_end_ns FROM steps WHERE phase = 'steady'
        UNION ALL
        SELECT start_ns, end_ns FROM wall WHERE NOT EXISTS (FROM steps WHERE phase = 'steady')
    ) AS s ON s.step_ns <= g.start_ns
    WHERE g.start_ns < s.step_end_ns AND g.cause = 'starved'
        AND (g.host IN ('CPU work', 'managed memory') OR g.host LIKE 'OS: %')
    ORDER BY g.duration_ns DESC, g.start_ns
    LIMIT 1
),
-- The known parts of the CPU work, by what it does; parts below $least_pct are left out. In the report host, CPU work
-- that follows a wait counts for the wait: then these parts may add up to more than the CPU work that remains.
known_work AS (
    SELECT
        string_agg(
            time_text(time_ns)
                || CASE WHEN what LIKE 'OS call: %' THEN ' in ' || substr(what, 10) || '()' ELSE ' ' || what END
            || coalesce(' in ' || regexp_extract(nvtx_path, '[^/]*$'), ''), ', '
        ORDER BY time_ns DESC, what, nvtx_path) AS work_text,
        sum(time_ns) AS known_ns
    FROM (
        SELECT nvtx_path, what, time_ns FROM _cpu_work
        WHERE counted_by = 'activity' AND is_told AND work_pct >= $least_pct
        ORDER BY time_ns DESC, what, nvtx_path
        LIMIT 3
    )
),
-- The share of the CPU work in which the host touches managed memory, whose pages move meanwhile.
managed_work AS (
    SELECT
        coalesce(sum(time_ns) FILTER (host = 'managed memory'), 0)::DOUBLE / sum(time_ns) AS managed_share,
        2 * managed_share > 1 AS is_managed
    FROM step_budget WHERE part = 'launch' AND host IN ('CPU work', 'managed memory')
)
SELECT
    h.recoverable_ns,
    h.wall_pct,
    CASE WHEN w.is_managed THEN 'The GPU waits while the host works on managed memory' END AS title,
    CASE
        WHEN w.is_managed
            THEN 'Let a kernel set up what the GPU works on, and a kernel reduce what the host looks at; or let the '
                'host do its part while the GPU works on other data.'
    END AS action,
    (SELECT nvtx_path FROM longest_gap) AS place,
    concat_ws('; ',
        'the GPU is idle for ' || time_text(h.recoverable_ns)
            || CASE
                WHEN w.is_managed
                    THEN CASE
                        WHEN w.managed_share < 0.95
                            THEN ' while the host is outside of CUDA calls, '
                                || time_text(w.managed_share * h.recoverable_ns)
                                || ' of it touching managed memory, whose pages migrate'
                        ELSE ' while the host touches managed memory, whose pages migrate'
                    END
                ELSE ' while the host is outside of CUDA calls'
                    || coalesce(
                        ': ' || (SELECT work_text FROM known_work WHERE known_ns <= 1.05 * h.recoverable_ns), ''
                    )
            END,
        (
            SELECT
                'the longest gap, ' || time_text(duration_ns) || ', is between ' || operation_text(before_name)
                    || ' and ' || operation_text(after_name)
                    || CASE WHEN host <> 'CPU work' THEN ' (' || host || ')' ELSE '' END
            FROM longest_gap
        )
    ) AS evidence
FROM host_report AS h, managed_work AS w
WHERE h.code = 'cpu_work' AND EXISTS (FROM classify_report WHERE part = 'launch' AND see = 'gaps')
