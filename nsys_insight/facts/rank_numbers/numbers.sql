-- The rank that each process states to NCCL in its largest communicator, and the number of ranks there; or its rank in
-- MPI_COMM_WORLD.
SELECT process_id, max(rank) AS rank, max(ranks) AS ranks, 'NCCL' AS source
FROM (FROM facts.nccl_ranks QUALIFY ranks = max(ranks) OVER (PARTITION BY process_id))
GROUP BY process_id
HAVING min(rank) = max(rank)
UNION ALL
SELECT process_id, any_value(rank), any_value(communicator_ranks), 'MPI'
FROM mpi_calls
WHERE communicator = 'world' AND rank IS NOT NULL AND communicator_ranks IS NOT NULL
    AND NOT EXISTS (FROM facts.nccl_ranks)
GROUP BY process_id
