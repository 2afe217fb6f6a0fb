-- Host time of push/pop ranges by their place in the nesting; ranges whose paths differ in their numbers alone are one.
WITH named AS (
    SELECT r.path, p.path AS parent_path, r.depth, r.name, count(*) AS calls, sum(r.duration_ns)::BIGINT AS host_ns
    FROM nvtx_nesting AS r
    LEFT JOIN nvtx_nesting AS p ON p.range_id = r.parent_id
    WHERE r.depth <= $deepest AND r.path IS NOT NULL
    GROUP BY ALL
),
folded AS (
    SELECT path, fold(path) AS folded FROM (SELECT DISTINCT path FROM named)
)
SELECT
    f.folded AS path, p.folded AS parent_path, n.depth,
    CASE WHEN f.folded = n.path THEN n.name ELSE folded_name(n.name) END AS name,
    sum(n.calls)::BIGINT AS calls, coalesce(sum(n.host_ns), 0)::BIGINT AS host_ns
FROM named AS n
JOIN folded AS f ON f.path = n.path
LEFT JOIN folded AS p ON p.path = n.parent_path
GROUP BY ALL
ORDER BY n.depth, host_ns DESC, path, parent_path, name
LIMIT $most
