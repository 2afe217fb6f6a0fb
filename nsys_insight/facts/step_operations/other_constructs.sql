-- The constructs that copies, memsets, graphs and calls of a step may be, in the order in which they are tried. Each
-- pattern is compiled once: it is searched in all names at once, a line each.
SELECT construct, operations, condition
FROM constructs()
WHERE regexp_extract(
    (SELECT string_agg(name, chr(10)) FROM internal.unnamed_operations WHERE kind <> 'kernel'), '(?m)' || operations
) <> ''
ORDER BY place
