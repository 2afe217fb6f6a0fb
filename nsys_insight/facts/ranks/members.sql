-- The rank that each process states for itself in each communicator, where it states only one.
SELECT process_id, communicator, min(rank) AS rank
FROM facts.nccl_ranks
WHERE communicator IS NOT NULL
GROUP BY ALL
HAVING min(rank) = max(rank)
