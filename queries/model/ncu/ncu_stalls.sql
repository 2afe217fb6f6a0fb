/*
description = "One row per launch and reason for which its warps waited."
[columns]
launch = "The launch, in `ncu_launches`"
reason = "long_scoreboard, barrier, wait … ; selected means issuing, not a stall"
stall_pct = "Share of a warp's time"
stall_cycles = "Cycles that a warp spent on it per issued instruction"
*/
-- ncu has three kinds of stall metrics: cycles per issued instruction, share of a warp's time, and samples of the
-- program counter. The first kind that was collected is used. Shares relate to all reasons of this kind, issuing
-- (selected) included.
WITH stall_metrics AS (
    SELECT
        launch,
        regexp_extract(
            metric,
            '(?:issue_stalled_|pcsamp_warps_issue_stalled_)(\w+?)(?:_per_issue_active|_per_warp_active'
            '|_not_issued)?(?:\.ratio|\.pct)?$',
            1
        ) AS reason,
        CASE
            WHEN regexp_matches(metric, '^smsp__average_warps?_(latency_)?issue_stalled_\w+\.ratio$')
                AND metric NOT LIKE '%not_issued%'
                THEN 1
            WHEN regexp_matches(metric, '^smsp__warp_issue_stalled_\w+_per_warp_active\.pct$') THEN 2
            WHEN regexp_matches(metric, '^smsp__pcsamp_warps_issue_stalled_\w+$') AND metric NOT LIKE '%not_issued'
                THEN 3
        END AS source,
        value
    FROM ncu_metrics
    WHERE metric LIKE '%issue_stalled_%' AND value >= 0
),
stalls_with_totals AS (
    SELECT
        launch, reason, source, value,
        min(source) OVER (PARTITION BY launch) AS best,
        sum(value) OVER (PARTITION BY launch, source) AS total
    FROM stall_metrics
    WHERE source IS NOT NULL
)
SELECT
    launch,
    CASE reason
        WHEN 'no_instructions' THEN 'no_instruction' WHEN 'warpgroup_arrive' THEN 'gmma' ELSE reason
    END AS reason,
    100.0 * value / nullif(total, 0) AS stall_pct,
    CASE WHEN source = 1 THEN value END AS stall_cycles
FROM stalls_with_totals
WHERE source = best;
