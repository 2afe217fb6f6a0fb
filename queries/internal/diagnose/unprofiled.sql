-- What is known of the step without nsys. No row without steady steps.
SELECT
    u.source, u.step_ns, u.low_ns, u.likely_ns, u.high_ns, u.late_ns, u.late_low_ns, u.late_high_ns,
    s.without AS sentence, s.unknown, s.misfit
FROM unprofiled_step AS u CROSS JOIN _unprofiled_sentences AS s
