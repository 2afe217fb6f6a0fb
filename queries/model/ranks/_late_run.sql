/*
description = """One row for a run in which the same ranks are late: what that costs, and what is known about the rank
    that costs most."""
[columns]
late_ns = "Total lateness of the latest rank, over all steps"
wall_ns = "Total wall time of those steps"
steps = "Number of those steps"
names = "The ranks that are late: ranks 1, 2"
rank = "The rank that costs most"
main_steps = "In how many steps it is late, as in `_lateness`"
main_ns = "By how much, on average"
minor_steps = "In how many others it is less late"
minor_ns = "By how much, on average"
step_numbers = "The first of the main steps, as in `_lateness`"
cause = "What makes it late, as in `ranks`"
more_busy_ns = "How much longer its GPU is busy in these steps, as in `ranks`"
more_idle_ns = "How much longer its GPU is idle in these steps, as in `ranks`"
busy_ratio = "How many times as long as the others' GPUs its GPU is busy"
host = "What its host does meanwhile"
place = "In which NVTX range"
host_ns = "Host time per step of the late rank, as in `ranks`"
others_host_ns = "How long the host of another rank works, as in `ranks`"
stretch_ns = "Time that the late host spends outside CUDA calls at a stretch, as in `ranks`"
min_stretch_ns = "The shortest of these stretches"
max_stretch_ns = "The longest of these stretches"
others_stretch_ns = "Time that the other host spends outside CUDA calls at a stretch, as in `ranks`"
stretch_before = "What it launches next, as in `ranks`"
launch_call_ratio = "Duration of the late rank's launch calls relative to the other host's, as in `ranks`"
waiting_ns = "How long the others wait in a step, on average, as in `_others_wait`"
compared_with = "What the busy and idle time are compared with, as in `rank_run`"
unit = "step, or collective"
*/
-- Several ranks that are late in the same step cost as much as the latest of them.
WITH step_delays AS (
    SELECT step, max(late_ns) AS late_ns, max(wall_ns) AS wall_ns FROM rank_steps GROUP BY step
),
cost AS (
    SELECT sum(late_ns)::DOUBLE AS late_ns, sum(wall_ns)::DOUBLE AS wall_ns, count(*) AS steps FROM step_delays
),
late_ranks AS (
    SELECT ranks_text(list(rank ORDER BY rank)) AS names FROM _lateness
),
costliest_rank AS (
    SELECT
        y.*, r.cause, r.more_busy_ns, r.more_idle_ns, r.busy_ratio, r.host, r.place, r.host_ns, r.others_host_ns,
        r.stretch_ns, r.min_stretch_ns, r.max_stretch_ns, r.others_stretch_ns, r.stretch_before,
        r.launch_call_ratio
    FROM _lateness AS y JOIN ranks AS r USING (rank)
    ORDER BY y.late_ns * y.steps DESC, rank
    LIMIT 1
)
SELECT
    c.late_ns, c.wall_ns, c.steps, l.names,
    w.rank, w.main_steps, w.main_ns, w.minor_steps, w.minor_ns, w.step_numbers,
    w.cause, w.more_busy_ns, w.more_idle_ns, w.busy_ratio, w.host, w.place, w.host_ns, w.others_host_ns,
    w.stretch_ns, w.min_stretch_ns, w.max_stretch_ns, w.others_stretch_ns, w.stretch_before,
    w.launch_call_ratio,
    o.waiting_ns, r.compared_with, r.unit
FROM rank_run AS r
CROSS JOIN cost AS c
CROSS JOIN _others_wait AS o
CROSS JOIN late_ranks AS l
CROSS JOIN costliest_rank AS w
WHERE r.verdict = 'late';
