-- The replacements of the constructs of the step, and those of kinds of operations, which any construct may meet.
SELECT
    r.construct, r.replacement, c.is_kind, c.place, r.condition, c.condition AS kind_condition, r.estimate_low,
    r.estimate_high, r.launches, r.saving_low, r.saving_high
FROM construct_replacements() AS r
JOIN constructs() AS c USING (construct)
WHERE c.is_kind OR r.construct IN (SELECT construct FROM internal.unjudged_operations)
ORDER BY c.place, r.replacement
