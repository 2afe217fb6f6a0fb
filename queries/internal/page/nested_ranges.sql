-- Host time of push/pop ranges by nesting. Ranges whose paths differ only in numbers are merged.
WITH range_totals AS (
    SELECT r.path, p.path AS parent_path, r.depth, r.name, count(*) AS calls, sum(r.duration_ns)::BIGINT AS host_ns
    FROM nvtx_nesting AS r
    LEFT JOIN nvtx_nesting AS p ON p.range_id = r.parent_id
    WHERE r.depth <= $max_depth AND r.style = 'push/pop' AND r.path IS NOT NULL
    GROUP BY ALL
),
folded_paths AS (
    SELECT path, fold(path) AS folded_path FROM (SELECT DISTINCT path FROM range_totals)
)
SELECT
    f.folded_path AS path, p.folded_path AS parent_path, n.depth,
    CASE WHEN f.folded_path = n.path THEN n.name ELSE folded_name(n.name) END AS name,
    sum(n.calls)::BIGINT AS calls, coalesce(sum(n.host_ns), 0)::BIGINT AS host_ns
FROM range_totals AS n
JOIN folded_paths AS f ON f.path = n.path
LEFT JOIN folded_paths AS p ON p.path = n.parent_path
GROUP BY ALL
ORDER BY n.depth, host_ns DESC, path, parent_path, name
LIMIT $max_rows
