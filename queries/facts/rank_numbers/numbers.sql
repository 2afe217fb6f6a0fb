-- The rank that each process states to NCCL in its largest communicator, and the number of ranks there.
SELECT process_id, max(rank) AS rank, max(ranks) AS ranks
FROM (FROM facts.nccl_ranks QUALIFY ranks = max(ranks) OVER (PARTITION BY process_id))
GROUP BY process_id
HAVING min(rank) = max(rank)
