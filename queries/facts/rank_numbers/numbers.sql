-- Which rank of how many each process says that it is of its largest communicator, to NCCL.
SELECT process_id, max(rank) AS rank, max(ranks) AS ranks
FROM (FROM facts.nccl_ranks QUALIFY ranks = max(ranks) OVER (PARTITION BY process_id))
GROUP BY process_id
HAVING min(rank) = max(rank)
