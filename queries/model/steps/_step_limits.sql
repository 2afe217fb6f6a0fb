/*
description = "One row: how much a change of the GPU's work can save per step before the host is the limit."
stored = true
[columns]
low_limit_ns = "What a change of the GPU's work saves at most if the host stays as slow as in the trace"
high_limit_ns = """What a change of the GPU's work saves at most if the host is as fast as it may be without the
    profiler, by `unprofiled_step`; the wall time where that is unknown"""
*/
SELECT
    greatest(t.wall_ns - coalesce(t.host_floor_ns, 0), 0) AS low_limit_ns,
    greatest(t.wall_ns - coalesce(u.host_low_ns, 0), 0) AS high_limit_ns
FROM _step_totals AS t
LEFT JOIN unprofiled_step AS u ON true;
