/*
title = "What bounds each step"
topic = "steps"
place = 5
question = "What bounds each step, and which steps are not like the others?"
page = false
aliases = ["step-verdicts"]
main = ["step", "verdict", "duration_ns", "gpu_pct", "launch_pct", "sync_pct", "copy_pct", "launch_calls"]
description = """
The verdict of classify for each steady step, with the shares of its wall that lead to it. The parts are those of classify;
other_pct is what the profiler took, what lies before a GPU's first or after its last operation, and what cannot be determined for
want of launch calls. launch_queue_ns is TKLQT: from the begin of each launch call to the start of its kernel on the GPU
(Vellaisamy et al., arXiv 2504.11750). Of several GPUs, shares and times are means."""
reading = """
Steps that all say the same are one problem: see classify. A few that differ are another one: compare them with steps, gaps
--from and --to, and look for what runs only every N steps (logging, an allocation, a checkpoint)."""
empty = "No steps found: name an NVTX range with --step-range, see steps, or ask classify about the whole"

[params.least_pct]
default = 10.0
least = 0
help = "A cause bounds the step from this share of the wall on (10: what nsys itself may cost, so less is not worth a verdict)"

[params.busy_pct]
default = 80.0
least = 0
help = "GPU-bound from this share of the wall on, in which the GPU works (80: the usual limit of near the ceiling)"

[params.main_pct]
default = 66.0
least = 0
help = "One cause alone is the verdict if it holds this share of all that are named"

[params.long_gap_ns]
type = "integer"
default = 100_000
least = 0
help = "CPU work in a gap of this length is more than launching takes (as in graph-candidates)"

[params.launch_apart_ns]
type = "integer"
default = 50_000
least = 0
help = "The most CPU work between two launches that is launching (as in graph-candidates)"

[columns]
step = "Number of the step"
verdict = "What bounds it"
duration_ns = "Its wall"
gpu_pct = "Share of the wall in which the GPU worked"
launch_pct = "Share in which it was idle because the host launched late"
sync_pct = "Share in which it was idle because the host had waited for it"
copy_pct = "Share with nothing but copies to or from the GPU, or idle for one"
allocation_pct = "Share in which it was idle while the host allocated or freed memory"
communication_pct = "Share with nothing but kernels that communicate"
dependency_pct = "Share in which work was launched in time and waited for something else on the GPU"
other_pct = "The rest"
launch_calls = "Launch calls whose kernel is in the trace"
launch_queue_ns = "TKLQT: from the begin of the launch calls to the start of their kernels, added"
queue_pct = "Share of it after the calls had returned: in queues, launch latency included"
*/
WITH shares AS (
    SELECT
        step,
        sum(time_ns) AS all_ns,
        sum(CASE part WHEN 'gpu' THEN time_ns ELSE 0 END) AS gpu_ns,
        sum(CASE part WHEN 'launch' THEN time_ns ELSE 0 END) AS launch_ns,
        sum(CASE part WHEN 'sync' THEN time_ns ELSE 0 END) AS sync_ns,
        sum(CASE part WHEN 'copy' THEN time_ns ELSE 0 END) AS copy_ns,
        sum(CASE part WHEN 'allocation' THEN time_ns ELSE 0 END) AS allocation_ns,
        sum(CASE part WHEN 'communication' THEN time_ns ELSE 0 END) AS communication_ns,
        sum(CASE part WHEN 'dependency' THEN time_ns ELSE 0 END) AS dependency_ns,
        sum(CASE WHEN part IN ('profiler', 'edge', 'unknown') THEN time_ns ELSE 0 END) AS other_ns
    FROM step_budget
    WHERE step IS NOT NULL
    GROUP BY step
),
percent AS (
    SELECT
        step,
        100.0 * gpu_ns::BIGINT / all_ns::BIGINT AS gpu_pct,
        100.0 * launch_ns::BIGINT / all_ns::BIGINT AS launch_pct,
        100.0 * sync_ns::BIGINT / all_ns::BIGINT AS sync_pct,
        100.0 * copy_ns::BIGINT / all_ns::BIGINT AS copy_pct,
        100.0 * allocation_ns::BIGINT / all_ns::BIGINT AS allocation_pct,
        100.0 * communication_ns::BIGINT / all_ns::BIGINT AS communication_pct,
        100.0 * dependency_ns::BIGINT / all_ns::BIGINT AS dependency_pct,
        100.0 * other_ns::BIGINT / all_ns::BIGINT AS other_pct
    FROM shares
)
SELECT
    p.step,
    _verdict_text(_verdict_of(
        p.gpu_pct, p.launch_pct, p.sync_pct, p.copy_pct, p.allocation_pct, p.communication_pct, p.dependency_pct, h.late,
        $least_pct, $busy_pct, $main_pct
    )) AS verdict,
    s.duration_ns,
    p.gpu_pct, p.launch_pct, p.sync_pct, p.copy_pct, p.allocation_pct, p.communication_pct, p.dependency_pct, p.other_pct,
    l.launch_calls,
    l.launch_queue_ns,
    100.0 * l.queue_ns / nullif(l.launch_queue_ns, 0) AS queue_pct
FROM percent AS p
CROSS JOIN (
    SELECT CASE WHEN apart_ns > 0.5 * waiting_ns THEN 'host-bound' ELSE 'launch-bound' END AS late FROM _cpu_work_apart($long_gap_ns, $launch_apart_ns)
) AS h
JOIN steps AS s ON s.step = p.step AND s.phase = 'steady'
LEFT JOIN step_launches AS l ON l.step = p.step
ORDER BY p.step
