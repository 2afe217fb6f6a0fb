-- Which rank of which communicator each process says that it is.
SELECT process_id, communicator, min(rank) AS rank
FROM facts.nccl_ranks
WHERE communicator IS NOT NULL
GROUP BY ALL
HAVING min(rank) = max(rank)
