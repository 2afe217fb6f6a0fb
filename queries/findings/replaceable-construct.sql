/*
code = "NSI701"
title = "An operation that another one replaces"
family = "constructs"
explains = [
    "late-host", "start", "wait", "copy", "kernel-time", "communication", "fusion", "graph-candidate", "graph-break",
    "small-grid", "scalar-read-backs", "small-copies", "low-occupancy",
]
meaning = """
The catalog of constructs knows what this operation is, and what does the same work in less time at this size."""
evidence = ["{calls:execution} {per} of {kernel} ({construct}) take {total_ns}"]
skip_if = "the replacement does not do the same work."
effort = "line"
estimate = """
By the entry of the catalog: the time of these operations and the idle time of the GPU before those that the replacement
removes, without what the replacement takes. Low: with half of the idle time, because the profiler makes a launch take
up to twice as long."""
report = "constructs"

[fix]
any = "Use the replacement that the catalog of constructs names."

[params]
min_pct = [1.0, "Share of the step from which a saving is reported (1: what runs differ by)"]
hot_pct = [5.0,
    "Share of the step from which its operations are why kernels take long (5: half of what a hot kernel takes)"]
*/
SELECT
    r.saving_ns AS recoverable_ns, r.saving_low_ns, 100 * r.saving_ns / t.wall_ns AS wall_pct, NULL AS place,
    r.bounded_by, 'construct: ' || r.construct AS family,
    {
        title: r.title, meaning: r.what,
        -- More than the operations take is the idle time before them.
        evidence: r.evidence || if(
            r.estimate_high_ns IS NOT NULL AND r.saving_ns > 1.05 * r.all_ns
                AND NOT contains(array_to_string(r.evidence, ''), '{idle_ns}'),
            ['the GPU is idle for {idle_ns} right before them'], []
        ),
        fix: r.fix, skip_if: r.skip_if, effort: r.effort,
        numerics: r.numerics, source: r.source, explains: r.explains, blocks: r.blocks
    } AS entry,
    -- Operations that stay do not shorten what the host does. Kernels alone are not why copies take their time.
    ['fusion', 'small-grid', 'low-occupancy'] || if(r.all_pct >= $hot_pct, ['kernel-time'], []) || CASE
        WHEN r.estimate_low_ns IS NULL OR r.launches < r.all_calls THEN [
            'late-host', 'start', 'wait', 'communication', 'graph-candidate', 'graph-break', 'scalar-read-backs'
        ] || if(r.launches < r.all_calls OR r.read_back_bytes IS NOT NULL, ['copy', 'small-copies'], []) ELSE []
    END AS explains,
    r.construct, r.kernel, r.calls, r.avg_ns, r.total_ns, r.total_pct, r.included, r.included_calls, r.included_ns,
    r.all_calls, r.all_ns, r.all_pct, r.idle_ns, r.host_ns, r.shapes, r.size_bytes, r.bytes_per_s, r.blocks_count,
    r.threads_per_block, r.registers_per_thread, r.static_shared_bytes, r.dynamic_shared_bytes, r.blocks_per_sm,
    r.blocks_without_shared, r.occupancy_pct, r.waves_per_sm, r.sm_count, r.read_back_bytes, r.before, r.after,
    r.devices, r.step_busy_pct, r.estimate_low_ns, r.estimate_high_ns, r.launches
FROM step_replacements AS r, _step_totals AS t
WHERE len(r.reported_by) = 0 AND 100 * r.saving_ns / t.wall_ns >= $min_pct AND r.saving_ns > 0
