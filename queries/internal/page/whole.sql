-- The time from the first to the last GPU operation in scope.
SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM gpu_ops HAVING count(*) > 0
