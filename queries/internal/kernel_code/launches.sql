-- The launches of a trace by kernel, block and memory, with the mangled names that ptxas prints.
WITH names AS (
    SELECT DISTINCT name_id, mangled_name_id FROM kernel_events
)
SELECT
    m.name AS mangled_name,
    s.name,
    h.threads_per_block AS block,
    h.registers_per_thread AS registers,
    h.dynamic_shared_bytes,
    h.static_shared_bytes,
    h.compute_capability,
    max(h.waves_per_sm) AS waves_per_sm,
    sum(h.calls)::BIGINT AS calls,
    sum(h.total_ns)::BIGINT AS total_ns
FROM launch_shapes AS h
LEFT JOIN names AS n USING (name_id)
LEFT JOIN strings AS s ON s.name_id = h.name_id
LEFT JOIN strings AS m ON m.name_id = n.mangled_name_id
GROUP BY ALL
ORDER BY total_ns DESC, m.name, s.name, block, dynamic_shared_bytes
