-- The constructs that copies, memsets, graphs and calls of a step may be, in the order in which they are tried.
SELECT c.construct, c.operations, c.condition
FROM constructs() AS c
WHERE c.operations IS NOT NULL AND EXISTS (
    FROM internal.unnamed_operations AS o WHERE o.kind <> 'kernel' AND regexp_matches(o.name, c.operations)
)
ORDER BY c.place
