-- What is known of the step without nsys, and the numbers of the sentences about it. No row without steady steps.
SELECT
    u.source, u.step_ns, t.wall_ns, t.busy_ns, u.low_ns, u.likely_ns, u.high_ns,
    u.late_ns, u.late_low_ns, u.late_high_ns,
    {'without': s.without, 'unknown': s.unknown, 'misfit': s.misfit} AS facts
FROM unprofiled_step AS u CROSS JOIN _unprofiled_source AS s CROSS JOIN _step_totals AS t
