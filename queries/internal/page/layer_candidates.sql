-- The kernels of the chains that can be fused, in order, at their first occurrence in the typical step.
SELECT
    c.candidate, coalesce(c.pattern, 'unrecognized') AS pattern, c.is_chosen, c.saved_low_ns, c.saved_high_ns,
    k.position, k.role = 'fused' AS is_fused, k.operation, k.name_id, k.start_ns, k.process_id, k.device_id, k.stream_id
FROM fusion_candidates AS c
JOIN fusion_kernels AS k USING (candidate)
WHERE c.verdict = 'YES'
ORDER BY c.candidate, k.position
