/*
title = "What bounds each step"
topic = "steps"
place = 5
question = "What bounds each step, and which steps differ from the others?"
examples = ["", "--step-range decode_step"]
page = false
aliases = ["step-verdicts"]
main = ["step", "verdict", "duration_ns", "gpu_pct", "launch_pct", "sync_pct", "copy_pct", "launch_calls"]
description = """
The verdict of classify for each steady step, with the shares of its wall time that lead to it. The parts are those
of classify; other_pct is profiler overhead, the time before a GPU's first and after its last operation, and what
cannot be determined because launch calls are missing. launch_queue_ns is TKLQT: from the start of each launch call
to the start of its kernel on the GPU (Vellaisamy et al., arXiv 2504.11750). With several GPUs, shares and times are
means."""
reading = """
If all steps have the same verdict, there is one problem: see classify. If a few differ, compare them with steps and
with gaps --from and --to, and look for what runs only every N steps (logging, an allocation, a checkpoint)."""
empty = "No steps found: name an NVTX range with --step-range, see steps, or run classify on the whole trace"

[params.least_pct]
default = 10.0
least = 0
help = """\
A cause bounds the step from this share of the wall time (10: nsys itself may cost as much, so a smaller share \
supports no verdict)"""

[params.busy_pct]
default = 80.0
least = 0
help = """\
GPU-bound if the GPU is busy for at least this share of the wall time (80: the usual limit for near the ceiling)"""

[params.main_pct]
default = 66.0
least = 0
help = "One cause alone is the verdict if it has this share of all causes named"

[params.long_gap_ns]
type = "integer"
default = 100_000
least = 0
help = "CPU work in a gap of this length is longer than launching takes (as in graph-candidates)"

[params.launch_apart_ns]
type = "integer"
default = 50_000
least = 0
help = "The longest CPU work between two launches that counts as launching (as in graph-candidates)"

[shares]
gpu_pct = "the step"
launch_pct = "the step"
sync_pct = "the step"
copy_pct = "the step"
allocation_pct = "the step"
communication_pct = "the step"
dependency_pct = "the step"
other_pct = "the step"
queue_pct = "launch queue"

[columns]
step = "Number of the step"
verdict = "What bounds it"
duration_ns = "Wall time of the step"
gpu_pct = "Share of the wall time in which the GPU was busy"
launch_pct = "Share in which it was idle because the host launched late"
sync_pct = "Share in which it was idle because the host had waited for it"
copy_pct = "Share in which it ran only copies to or from the GPU, or was idle for one"
allocation_pct = "Share in which it was idle while the host allocated or freed memory"
communication_pct = "Share in which it ran only communication kernels"
dependency_pct = """\
Share in which it was idle although work was launched in time: the work waited for something else on the GPU"""
other_pct = "The rest"
launch_calls = "Launch calls whose kernel is in the trace"
launch_queue_ns = "TKLQT: time from the start of each launch call to the start of its kernel, summed"
queue_pct = "Share of launch_queue_ns after the calls had returned: in queues, launch latency included"
*/
WITH step_times AS (
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
        sum(CASE WHEN part IN ('profiler', 'start-up and end', 'unknown') THEN time_ns ELSE 0 END) AS other_ns
    FROM step_budget
    WHERE step IS NOT NULL
    GROUP BY step
),
step_shares AS (
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
    FROM step_times
)
SELECT
    p.step,
    _verdict_text(_verdict_of(
        p.gpu_pct, p.launch_pct, p.sync_pct, p.copy_pct, p.allocation_pct, p.communication_pct, p.dependency_pct,
        0, h.late_bound, $least_pct, $busy_pct, $main_pct
    )) AS verdict,
    s.duration_ns,
    p.gpu_pct, p.launch_pct, p.sync_pct, p.copy_pct, p.allocation_pct, p.communication_pct, p.dependency_pct,
    p.other_pct,
    l.launch_calls,
    l.launch_queue_ns,
    100.0 * l.queue_ns / nullif(l.launch_queue_ns, 0) AS queue_pct
FROM step_shares AS p
CROSS JOIN (
    SELECT CASE WHEN apart_ns > 0.5 * waiting_ns THEN 'host-bound' ELSE 'launch-bound' END AS late_bound
    FROM _cpu_work_apart($long_gap_ns, $launch_apart_ns)
) AS h
JOIN steps AS s ON s.step = p.step AND s.phase = 'steady'
LEFT JOIN step_launches AS l ON l.step = p.step
ORDER BY p.step
