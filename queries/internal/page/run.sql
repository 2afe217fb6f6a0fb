-- From when to when there is anything to see, the steps included; and the wall alone, where it is one piece of time.
SELECT
    min(start_ns) AS start_ns, max(end_ns) AS end_ns,
    CASE WHEN count(*) FILTER (is_wall) = 1 THEN min(start_ns) FILTER (is_wall) END AS wall_start_ns,
    max(end_ns) FILTER (is_wall) AS wall_end_ns
FROM (
    SELECT start_ns, end_ns, true AS is_wall FROM wall
    UNION ALL
    SELECT start_ns, end_ns, false FROM steps
)
HAVING count(*) > 0
