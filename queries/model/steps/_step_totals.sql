/*
description = """
One row: `_step_means`, and how much a change of the GPU's work can save before the host is the limit."""
stored = true
[columns]
has_steps = "Whether steps were found"
units = "Steady steps times GPUs times tokens per step; the GPUs where there are no steps"
wall_ns = "Wall time of a step"
busy_ns = "Time in which the GPU was busy"
idle_ns = "Time in which it was idle"
kernel_ns = "Sum of the durations of the kernels"
host_floor_ns = """Time of the host between the starts of two steps without its waits: no change of the GPU's work makes
    a step shorter; NULL where there are no steps"""
launch_calls = "Launch calls of a step"
sync_calls = "Calls of a step that wait"
low_limit_ns = "What a change of the GPU's work saves at most if the host stays as slow as in the trace"
high_limit_ns = """What a change of the GPU's work saves at most if the host is as fast as it may be without the
    profiler, by `unprofiled_step`; the wall time where that is unknown"""
*/
-- A table because most findings read it: as a view it was planned again in each of them.
SELECT
    m.*,
    greatest(m.wall_ns - coalesce(m.host_floor_ns, 0), 0) AS low_limit_ns,
    greatest(m.wall_ns - coalesce(u.host_low_ns, 0), 0) AS high_limit_ns
FROM _step_means AS m
LEFT JOIN unprofiled_step AS u ON true;
