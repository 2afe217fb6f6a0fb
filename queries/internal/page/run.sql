-- The time bounds of the wall time and the steps.
SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns
FROM (SELECT start_ns, end_ns FROM wall UNION ALL SELECT start_ns, end_ns FROM steps)
HAVING count(*) > 0
