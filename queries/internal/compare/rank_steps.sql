-- Where the time of the steps of each rank goes, as in `ranks`. No row where the ranks are not matched by steps.
SELECT s.rank, s.wall_ns, s.waiting_ns, s.transfer_ns, s.late_ns
FROM rank_steps AS s CROSS JOIN rank_run AS r
WHERE r.unit = 'step' AND r.verdict IS NOT NULL
ORDER BY s.rank, s.step
