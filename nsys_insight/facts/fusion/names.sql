-- The names of the kernels of the sampled steps.
SELECT name_id, name, family, provenance
FROM kernel_names
WHERE name_id IN (SELECT name_id FROM internal.fusion_operations)
