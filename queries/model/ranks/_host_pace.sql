/*
description = "One row for a run whose hosts set the pace: how long they work."
[columns]
is_all_hosts = "TRUE if the hosts of all ranks were measured"
some_hosts = "Hosts that were measured; NULL if they are all"
min_host_ns = "Time per step that the host works that works least; a mean over the steps"
max_host_ns = "Time of the host that works most; NULL if it is less than 1% longer"
step_ns = "Mean step time"
*/
-- The hosts that were measured. All steps of a rank are on its own clock, so only means are compared.
WITH hosts AS (
    SELECT rank, avg(host_ns) AS host_ns, avg(wall_ns) AS wall_ns
    FROM rank_steps
    WHERE host_ns IS NOT NULL
    GROUP BY rank
)
SELECT
    count(*) = any_value(r.ranks) AS is_all_hosts, nullif(count(*), any_value(r.ranks)) AS some_hosts,
    min(host_ns) AS min_host_ns, CASE WHEN max(host_ns) >= 1.01 * min(host_ns) THEN max(host_ns) END AS max_host_ns,
    avg(wall_ns) AS step_ns
FROM hosts, rank_run AS r
WHERE r.verdict = 'host'
HAVING count(*) > 0;
