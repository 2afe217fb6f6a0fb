-- The constructs of the step that have a condition for being efficient.
SELECT construct, efficient FROM constructs()
WHERE efficient IS NOT NULL AND construct IN (SELECT construct FROM internal.unjudged_operations)
