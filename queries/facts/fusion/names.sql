-- What the kernels of these steps are.
SELECT name_id, name, family, provenance
FROM kernel_names
WHERE name_id IN (SELECT name_id FROM internal.fusion_operations)
