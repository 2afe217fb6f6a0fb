/*
title = "The GPU stalls at one place in the program"
family = "launch"
overlaps = true
meaning = """
The GPU's long gaps are not spread over the run: they come before one operation, after one thing that the host does."""
action = """
See what the program does there; gap-places lists all such places."""
caveat = """
It waits there for what it needs: other ranks, data, a user."""
report = "gaps"
when = """
SELECT 1 FROM gpu_gaps WHERE duration_ns >= $long_gap_ns
HAVING 100 * sum(duration_ns) >= $least_pct * (SELECT sum(time_ns) FROM step_budget)"""

[params.long_gap_ns]
default = 100000
help = "Shortest gap that counts as a stall (as CPU work that is more than launching, in graph-candidates)"

[params.least_pct]
default = 3.0
help = "Share of the wall time from which a place is named (3: an improvement that is worth keeping)"
*/
WITH windows AS (
    SELECT step, start_ns, end_ns FROM steps WHERE phase = 'steady'
    UNION ALL
    SELECT NULL, start_ns, end_ns + 1 FROM wall WHERE NOT EXISTS (FROM steps WHERE phase = 'steady')
),
wall_total AS (
    SELECT sum(time_ns)::DOUBLE AS all_ns,
        count(DISTINCT (step, gpu_id))
            * any_value(CASE WHEN step IS NULL THEN 1 ELSE (SELECT tokens_per_step FROM step_method) END) AS gpu_tokens
    FROM step_budget
),
stalls AS (
    SELECT g.after_name, g.host, fold(g.nvtx_path) AS nvtx_path, g.duration_ns, o.step
    FROM gaps_report AS g ASOF JOIN windows AS o ON o.start_ns <= g.start_ns
    -- The time of a graph launch counts as launching; where its nodes are traced, as the profiler's.
    WHERE g.start_ns < o.end_ns AND g.duration_ns >= $long_gap_ns AND g.cause <> 'profiler'
        AND coalesce(g.host NOT LIKE 'graph launch: %', true)
),
longest_stall AS (
    SELECT
        after_name, host, nvtx_path, count(*) AS gaps, count(DISTINCT step) AS steps,
        sum(duration_ns)::DOUBLE AS total_ns, median(duration_ns) AS med_ns,
        -- The median stands for all gaps if together they add up to about as much.
        abs(count(*) * median(duration_ns) - sum(duration_ns)) <= 0.25 * sum(duration_ns) AS are_alike
    FROM stalls
    GROUP BY after_name, host, nvtx_path
    QUALIFY row_number() OVER (ORDER BY total_ns DESC, after_name, host, nvtx_path) = 1
),
steady_step_count AS (
    SELECT count(*) AS all_steps FROM windows WHERE step IS NOT NULL
)
SELECT
    p.total_ns / w.gpu_tokens AS recoverable_ns,
    100 * p.total_ns / w.all_ns AS wall_pct,
    -- The family of the finding that has this time.
    CASE
        WHEN host LIKE 'alloc: %' OR host LIKE 'free: %' THEN 'allocation'
        WHEN host LIKE 'sync: %' THEN 'sync'
        WHEN host LIKE 'copy: %' THEN 'copy'
    END AS family,
    p.nvtx_path AS place,
    CASE
        WHEN all_steps = 0
            THEN CASE gaps
                WHEN 1 THEN 'the GPU stalls '
                ELSE 'the GPU stalls ' || gaps || ' times' || CASE WHEN are_alike THEN ' for ' ELSE ', in total ' END
            END
        WHEN steps = 1 THEN '1 of ' || all_steps || ' steps stalls '
        ELSE steps || ' of ' || all_steps || ' steps stall '
    END || CASE
        WHEN are_alike
            THEN time_text(med_ns)
                || CASE
                    WHEN all_steps > 0 AND gaps > 1.5 * steps THEN ', ' || count_text(gaps / steps) || ' times,' ELSE ''
                END
        ELSE CASE WHEN all_steps > 0 AND gaps > 1 THEN gaps || ' times, in total ' ELSE '' END
            || time_text(total_ns) || CASE WHEN gaps > 1 THEN ',' ELSE '' END
    END
        || ' before ' || operation_text(after_name)
        || CASE
            WHEN host IS NULL THEN ''
            WHEN host LIKE 'OS: %' OR host LIKE '%: cu%' THEN ', in ' || regexp_replace(host, '^[^:]*: ', '')
            WHEN host = 'CPU work' THEN ', while the CPU is busy outside of CUDA calls'
            WHEN host = 'launch latency' THEN ', after its launch call'
            WHEN host = 'managed memory' THEN ', while the host touches managed memory'
            WHEN host = 'launch call under way' THEN ', while it is launched'
            ELSE ', which was launched in time and waits on the GPU'
        END AS evidence
FROM longest_stall AS p, wall_total AS w, steady_step_count AS c
WHERE 100 * p.total_ns >= $least_pct * w.all_ns
