-- The loop nest around the step: each loop with the operations and inner loops of a typical iteration, in order.
WITH root AS (
    SELECT coalesce(
        (SELECT string_split(loop, '.')[1] FROM step_method),
        (SELECT arg_max(loop, gpu_share) FROM loops WHERE depth = 0)
    ) AS loop
)
SELECT l.loop, l.iterations, l.per_parent, o.position, o.inner_loop, o.repeats, o.kind, n.name, n.family, n.provenance,
    o.label
FROM loops AS l
JOIN root AS r ON l.loop = r.loop OR starts_with(l.loop, r.loop || '.')
JOIN loop_operations AS o ON o.loop = l.loop
LEFT JOIN kernel_names AS n USING (name_id)
WHERE o.kind <> 'wait'
ORDER BY l.loop, o.position
