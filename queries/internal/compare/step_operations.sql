-- The operations of the first $most steady steps, in the order in which they ran on the GPU.
WITH first_steps AS (
    SELECT step, process_id, host_start_ns, host_end_ns FROM steps WHERE phase = 'steady' ORDER BY step LIMIT $most
)
SELECT
    s.step, o.kind, coalesce(n.name, o.label, o.kind) AS name, coalesce(n.family, o.kind) AS family, o.duration_ns,
    coalesce(o.api_start_ns, o.start_ns) AS call_ns
FROM gpu_ops_in_nvtx AS o
ASOF JOIN first_steps AS s
    ON s.process_id = o.process_id AND s.host_start_ns <= coalesce(o.api_start_ns, o.start_ns)
LEFT JOIN kernel_names AS n USING (name_id)
WHERE coalesce(o.api_start_ns, o.start_ns) < s.host_end_ns
ORDER BY s.step, o.start_ns, o.end_ns, name
