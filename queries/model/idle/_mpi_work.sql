/*
description = "The MPI function that takes the most time of the host in steady steps."
[columns]
name = "Name of the function"
*/
SELECT s.name
FROM _host_activity AS a
ASOF JOIN _steady_windows AS w ON w.host_start_ns <= a.start_ns
JOIN strings AS s USING (name_id)
WHERE a.kind = 'mpi' AND a.start_ns < w.host_end_ns
GROUP BY s.name
ORDER BY sum(a.end_ns - a.start_ns) DESC, s.name
LIMIT 1;
