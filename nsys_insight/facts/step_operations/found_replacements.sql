-- The replacements of the constructs of the step.
SELECT construct, replacement, condition, estimate_low, estimate_high, launches, saving_low, saving_high
FROM construct_replacements()
WHERE construct IN (SELECT construct FROM internal.unjudged_operations)
ORDER BY construct, replacement
