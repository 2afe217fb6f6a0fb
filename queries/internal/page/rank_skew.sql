-- The collectives with the largest skew between the arrivals of the ranks.
SELECT c.operation, c.bytes, c.step, c.skew_ns, c.transfer_ns, c.waiting_ns, c.last_rank, c.seen_ranks
FROM collectives AS c
CROSS JOIN rank_run AS r
WHERE c.skew_ns > r.error_ns
ORDER BY c.skew_ns DESC, c.collective
LIMIT $max_rows
