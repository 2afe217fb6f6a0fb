/*
title = "Cost of a step, one column per phase"
topic = "steps"
place = 9
question = "What does a prefill cost, a decode step, and a step that does both?"
examples = ["", "--format markdown -o phases.md"]
description = """
The budget of per-token for each phase separately, as means over its steps: what they contain, where their time
goes, and why the GPU was idle. The steps are those of the report phases, which says how phases are found.
gpu_busy_ns + gpu_idle_ns is wall_ns, and the idle_ rows add up to gpu_idle_ns. Unlike in per-token, idle_sync_ns is
the time inside waits only; the late launches after a wait are in idle_launch_ns. For other phases, or for each
batch size, see phases."""
reading = """
Prefill works on many tokens at once, so the GPU should be its limit; decode is bound by memory or by launches. This
table and diff show a change that helps one and slows the other. More launch calls in mixed than in decode: the
prefill runs eagerly, next to a graph for decode."""
empty = """\
No NVTX range names prefill or decode; see phases for how they are found, and per-token for steps found in other \
ways"""

[columns]
metric = "What was counted or measured; steps is the number of steps"
prefill = "Mean over the steps that only prefill"
mixed = "Mean over the steps that prefill and decode"
decode = "Mean over the steps that only decode"

[notes]
classes.text = "decode steps have several batch sizes: {batch_sizes}; see phases for each"
classes.query = """
SELECT list(batch_size ORDER BY batch_size) AS batch_sizes
FROM (SELECT DISTINCT batch_size FROM phase_steps WHERE phase = 'decode' AND batch_size IS NOT NULL)
HAVING count(*) > 1"""
*/
WITH metric_means AS (
    SELECT 0 AS place, 'steps' AS metric, phase, count(*)::DOUBLE AS value FROM phase_steps GROUP BY phase
    UNION ALL
    SELECT place, metric, phase, CASE WHEN count(value) = count(*) THEN avg(value) END
    FROM phase_metrics
    GROUP BY place, metric, phase
)
SELECT
    metric,
    any_value(value) FILTER (phase = 'prefill') AS prefill,
    any_value(value) FILTER (phase = 'mixed') AS mixed,
    any_value(value) FILTER (phase = 'decode') AS decode
FROM metric_means
GROUP BY place, metric
HAVING bool_or(phase IN ('prefill', 'mixed', 'decode'))
ORDER BY place, metric
