-- What differs between the ranks of a run: means over its steps.
SELECT
    rank, avg(wall_ns) AS step_ns, avg(busy_ns) AS busy_ns, avg(waiting_ns) AS waiting_ns,
    avg(transfer_ns) AS transfer_ns, avg(idle_ns) AS idle_ns, avg(host_ns) AS host_ns,
    count(*) FILTER (late_ns > 0) AS late_steps
FROM rank_steps
GROUP BY rank
ORDER BY rank
