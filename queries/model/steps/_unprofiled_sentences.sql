/*
description = "What is known of the step without the profiler, in words; one row if there are steady steps."
[columns]
unit = "What a step is called: step, token, layer"
without = "Time of a step without nsys, as a clause; NULL if it takes as long as under nsys, or that is unknown"
times = "Time of a step under nsys and without nsys; NULL if both are equal, or that is unknown"
unknown = "Why the time without nsys is unknown, although late launches take a part of a step; NULL if it is known"
misfit = "Why --step-time is not used, as a sentence; NULL if it is"
*/
SELECT
    unit, without,
    time_text(step_ns) || ' per ' || unit || ' under nsys; ' || without AS times,
    CASE WHEN source IS NULL AND late_ns >= 0.1 * step_ns THEN reason END AS unknown,
    CASE WHEN reason LIKE '--step-time%' THEN reason END AS misfit
FROM (
    SELECT
        u.*,
        CASE WHEN m.tokens_per_step <> 1 THEN 'token' ELSE coalesce(m.unit, 'step') END AS unit,
        CASE
            WHEN u.source = 'measured' THEN 'about ' || time_text(u.low_ns) || ' without (measured)'
            WHEN u.low_ns >= 0.9 * u.step_ns THEN NULL
            WHEN u.source = 'estimated' AND time_text(u.low_ns) = time_text(u.high_ns)
                THEN 'about ' || time_text(u.low_ns) || ' without (estimated)'
            WHEN u.source = 'estimated'
                THEN time_text(u.low_ns) || ' to ' || time_text(u.high_ns) || ' without (estimated)'
        END AS without
    FROM unprofiled_step AS u CROSS JOIN step_method AS m
);
