-- The latest end of what begins before a place, and the last call there.
SELECT
    (SELECT max(until) FROM _gpu_line WHERE place < $place) AS reached,
    (SELECT call FROM _gpu_line WHERE place < $place ORDER BY place DESC, call DESC NULLS FIRST LIMIT 1) AS call
