/*
description = "The loops that `_repetitions` describes, before their contents are read: few traces have any."
stored = true
progress = "short loops"
[columns]
loop = "The loop, as in `loops`"
is_step = "Whether the iterations are the steps"
has_steps = "Whether steps were found"
repeats = "Iterations in a step; in total if the iterations are the steps"
share = "Share of the wall time that the iterations take"
*/
SELECT loop, is_step, has_steps, repeats, share
FROM (
    SELECT
        l.*, m.loop IS NOT DISTINCT FROM l.loop AS is_step,
        t.has_steps, coalesce(m.step_count, 1) AS all_steps, l.iterations / if(is_step, 1, all_steps) AS repeats,
        if(is_step, 1, least(1, l.iterations * l.period_ns / (all_steps * t.wall_ns))) AS share
    FROM loops AS l
    CROSS JOIN _step_totals AS t
    LEFT JOIN step_method AS m ON m.process_id = l.process_id AND m.step_count > 0
    WHERE m.step_count IS NOT NULL OR NOT t.has_steps
) AS l
WHERE launches >= 1 AND operations <= 48 AND repeats >= 16 AND share >= 0.3 AND NOT (is_step AND marks > 0)
    AND NOT EXISTS (FROM loop_operations AS o WHERE o.loop = l.loop AND o.kind IN ('wait', 'loop'));
