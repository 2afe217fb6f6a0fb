/*
code = "NSI505"
title = "The stages of a pipeline wait for each other"
family = "pipeline"
is_cross_rank = true
overlaps = true
meaning = """
In each step, a stage has nothing to do until the first microbatch reaches it and after the last one has left it. No
rank has to be late for that."""
evidence = [
    "in the usual step a rank waits {bubble_pct} of the time for the others, on average over the ranks",
    "{stage_messages:message} per step from one rank to the next",
    "rank {pace_rank} is busy {pace_ratio} times as long as the median of the others",
]
caveat = """
The microbatches would become too small to fill a GPU."""
effort = "line"
numerics = "rounding"
estimate = """
No saving is estimated: it depends on how small the microbatches can be."""
links = ["PyTorch documentation, Pipeline Parallelism"]
report = "ranks"

[cure]
any = """
Use more microbatches a step, or several smaller stages on each rank (interleaved): filling and draining then take a
smaller part of the step. Balance the stages."""
pytorch = """
Use more microbatches a step (n_microbatches of the schedule), or several smaller stages on each rank
(ScheduleInterleaved1F1B of torch.distributed.pipelining): filling and draining then take a smaller part of the step.
Balance the stages."""

[params.least_pct]
default = 5.0
help = "Smallest share of the usual step that a rank waits (a choice)"

[params.pace_pct]
default = 5.0
help = "A stage sets the pace if it is busy longer than the others by this share of a step (as in the report ranks)"
*/
WITH usual_times AS (
    SELECT rank, median(busy_ns) AS busy_ns, median(wall_ns) AS wall_ns
    FROM rank_steps
    WHERE step NOT IN (SELECT step FROM rank_steps WHERE late_ns > 0)
    GROUP BY rank
),
busiest_rank AS (
    FROM usual_times ORDER BY busy_ns DESC, rank LIMIT 1
),
pace AS (
    SELECT any_value(b.rank)::VARCHAR AS pace_rank, any_value(b.busy_ns) / median(u.busy_ns) AS pace_ratio
    FROM busiest_rank AS b JOIN usual_times AS u ON u.rank <> b.rank
    HAVING any_value(b.busy_ns) - median(u.busy_ns) >= $pace_pct / 100 * any_value(b.wall_ns)
        AND median(u.busy_ns) > 0
)
SELECT
    NULL::DOUBLE AS recoverable_ns,
    r.bubble_pct AS wall_pct,
    -- Messages between two ranks do not show whether each rank has several stages.
    CASE r.stages WHEN 2 THEN '2 ranks' ELSE r.stages || ' stages' END AS place,
    r.bubble_pct,
    r.stage_messages,
    p.pace_rank,
    round(p.pace_ratio, 1) AS pace_ratio
FROM rank_run AS r
LEFT JOIN pace AS p ON true
WHERE r.bubble_pct >= $least_pct
