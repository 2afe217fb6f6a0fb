/*
code = "NSI505"
title = "The stages of a pipeline wait for each other"
family = "pipeline"
is_cross_rank = true
overlaps = true
meaning = """
In each step, a stage has nothing to do until the first microbatch reaches it and after the last one has left it. No
rank has to be late for that. If one stage works longer than the others, they also wait for it in between, with each
microbatch."""
evidence = [
    "in the usual step a rank waits {bubble_pct} of the time for the others, on average over the ranks",
    "{stage_messages:message} {per} from one rank to the next",
    [
        "rank {pace_rank} is busy {pace_ratio} times as long as the median of the others, for {busy_ns} of {step_ns}",
        "rank {pace_rank} is busy {pace_ratio} times as long as the median of the others",
    ],
]
skip_if = "The microbatches would become too small to fill a GPU."
effort = "line"
numerics = "rounding"
estimate = """
Where one stage works longer: of m microbatches, all but the first pass at the pace of the longest stage, so high is
(m - 1) / m of what it is busy longer than the mean of all stages, and low is half of that, because the messages then
no longer hide behind the wait. Otherwise no saving is estimated: it depends on how small the microbatches can be."""
links = ["PyTorch documentation, Pipeline Parallelism"]
report = "ranks"

[fix.balance]
any = """
Give that rank fewer layers, and the others more: stages that take equally long, by their measured time and not by
their number of layers. An embedding or a loss counts as well."""
pytorch = """
Give that rank fewer layers, and the others more: stages that take equally long, by their measured time and not by
their number of layers (the split points of torch.distributed.pipelining.pipeline). An embedding or a loss counts as
well."""

[fix.microbatches]
any = """
Use more microbatches a step, or several smaller stages on each rank (interleaved): filling and draining then take a
smaller part of the step. Balance the stages."""
pytorch = """
Use more microbatches a step (n_microbatches of the schedule), or several smaller stages on each rank
(ScheduleInterleaved1F1B of torch.distributed.pipelining): filling and draining then take a smaller part of the step.
Balance the stages."""

[params]
min_pct = [5.0, "Smallest share of the usual step that a rank waits (a choice)"]
critical_pct = [10.0, "Share of the usual step from which it is critical (10: as of findings with a saving)"]
pace_pct = [5.0,
    "A stage sets the pace if it is busy longer than the others by this share of a step (as in the report ranks)"]
*/
SELECT
    p.high_ns / $tokens AS recoverable_ns,
    p.high_ns / 2 / $tokens AS saving_low_ns,
    coalesce(100 * p.high_ns / p.step_ns, r.bubble_pct) AS wall_pct,
    CASE WHEN p.high_ns IS NULL THEN 'microbatches' ELSE 'balance' END AS cure_case,
    CASE WHEN r.bubble_pct >= $critical_pct THEN 'critical' ELSE 'warning' END AS severity,
    -- Messages between two ranks do not show whether each rank has several stages.
    concat_ws(
        ': ', CASE r.stages WHEN 2 THEN '2 ranks' ELSE r.stages || ' stages' END,
        CASE WHEN p.high_ns IS NOT NULL THEN 'rank ' || p.rank END
    ) AS place,
    r.bubble_pct,
    r.stage_messages,
    CASE WHEN p.more_ns >= $pace_pct / 100 * p.step_ns THEN p.rank::VARCHAR END AS pace_rank,
    round(p.ratio, 1) AS pace_ratio,
    CASE WHEN p.high_ns IS NOT NULL THEN p.busy_ns / $tokens END AS busy_ns,
    CASE WHEN p.high_ns IS NOT NULL THEN p.step_ns / $tokens END AS step_ns
FROM rank_run AS r
LEFT JOIN _stage_pace AS p ON true
WHERE r.bubble_pct >= $min_pct
