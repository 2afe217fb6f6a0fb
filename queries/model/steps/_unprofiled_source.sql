/*
description = """One row if there are steady steps: what the sentences about the step without the profiler are made of
    (queries/reports/notes.toml). Each list has one item, or is NULL."""
[columns]
unit = "What a step is called: step, token, layer"
step_ns = "Time of a typical step under nsys"
without = """\
Time of a typical step without nsys: measured, about or from least to most; NULL if it takes as long as under
    nsys, or that is unknown"""
unknown = "Why the time without nsys is unknown, although late launches take a part of a step; NULL if it is known"
misfit = "Why --step-time is not used, with the times of a step; NULL if it is used"
*/
SELECT
    CASE WHEN m.tokens_per_step <> 1 THEN 'token' ELSE coalesce(m.unit, 'step') END AS unit,
    u.step_ns,
    CASE
        WHEN u.source = 'measured' OR u.low_ns < 0.9 * u.step_ns THEN [{
            'measured_ns': CASE u.source WHEN 'measured' THEN u.low_ns END,
            -- Times that are written with the same digits are no range.
            'about_ns': CASE WHEN time_text(u.low_ns) = time_text(u.high_ns) THEN u.low_ns END,
            'low_ns': u.low_ns, 'high_ns': u.high_ns
        }]
    END AS without,
    CASE
        WHEN u.source IS NULL AND u.late_ns >= 0.1 * u.step_ns THEN [{
            'is_ranks': u.reason = 'other ranks',
            'is_traced_graphs': u.reason = 'traced graphs',
            'is_even': u.reason = 'even',
            'is_short': u.reason = 'few launches',
            'is_graphs': u.reason = 'graphs',
            'is_traced_back': u.reason = 'backtraces',
            'is_loading': u.reason = 'code loading',
            'is_other_work': u.reason = 'other work',
            'long_call_ns': CASE u.reason WHEN 'long calls' THEN u.call_ns END,
            'is_framework': u.reason = 'framework'
        }]
    END AS unknown,
    CASE
        WHEN u.reason IN ('too long', 'too short') THEN [{
            'measured_ns': m.measured_ns,
            'longer_ns': CASE u.reason WHEN 'too long' THEN u.step_ns * m.tokens_per_step END,
            'shorter_ns': CASE u.reason WHEN 'too short' THEN s.busy_ns * m.tokens_per_step END
        }]
    END AS misfit
FROM unprofiled_step AS u CROSS JOIN step_method AS m CROSS JOIN _step_totals AS s;
