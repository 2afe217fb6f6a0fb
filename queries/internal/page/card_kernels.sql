-- The kernels with the most time, with statistics of their durations.
SELECT
    k.name_id, coalesce(n.name, '(no name)') AS name, n.family, n.provenance,
    k.calls, k.total_ns, k.total_ns / k.calls AS avg_ns, k.med_ns, k.min_ns, k.max_ns,
    100.0 * k.total_ns / nullif(sum(k.total_ns) OVER (), 0) AS share_pct
FROM (
    SELECT name_id, count(*) AS calls, sum(duration_ns)::BIGINT AS total_ns, median(duration_ns) AS med_ns,
        min(duration_ns) AS min_ns, max(duration_ns) AS max_ns
    FROM kernel_events
    GROUP BY name_id
) AS k
LEFT JOIN kernel_names AS n USING (name_id)
ORDER BY k.total_ns DESC, name, k.name_id
LIMIT $max_rows
