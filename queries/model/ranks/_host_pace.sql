/*
description = "One row for a run whose hosts set the pace: how long they work."
[columns]
ranks = "Hosts that were measured"
min_ns = "How long the host works in a step that works least; a mean over the steps"
max_ns = "How long the host works that works most"
wall_ns = "How long a step takes; a mean"
text = "How long the hosts work, in words"
*/
-- The hosts that were measured. All steps of a rank are on its own clock, so only means are compared.
WITH hosts AS (
    SELECT rank, avg(host_ns) AS host_ns, avg(wall_ns) AS wall_ns
    FROM rank_steps
    WHERE host_ns IS NOT NULL
    GROUP BY rank
)
SELECT
    count(*) AS ranks, min(host_ns) AS min_ns, max(host_ns) AS max_ns, avg(wall_ns) AS wall_ns,
    'the hosts of ' || CASE count(*) WHEN any_value(r.ranks) THEN 'all ranks' ELSE count(*) || ' ranks' END || ' work '
        || time_text(min(host_ns))
        || coalesce(' to ' || nullif(time_text(max(host_ns)), time_text(min(host_ns))), '')
        || ' in a ' || any_value(r.unit) || ' of ' || time_text(avg(wall_ns)) AS text
FROM hosts, rank_run AS r
WHERE r.verdict = 'host'
HAVING count(*) > 0;
