-- A program that communicates with MPI alone has no NCCL kernels: then its blocking collectives on the host are when
-- ranks meet. A process is on the GPU that it gives most kernels to. In an MPI_Scan or an MPI_Iallreduce, ranks do
-- not wait for all others, so these do not tell who is late.
CREATE VIEW _rank_collectives AS
SELECT process_id, device_id, gpu_id, stream_id, start_ns, end_ns, operation, communicator, bytes
FROM nccl_kernels
UNION ALL
SELECT
    c.process_id, g.device_id, g.gpu_id, 0, c.start_ns, c.end_ns,
    CASE lower(regexp_replace(c.name, '^MPI_(.*?)(_block|v|w)?$', '\1'))
        WHEN 'allreduce' THEN 'AllReduce'
        WHEN 'allgather' THEN 'AllGather'
        WHEN 'alltoall' THEN 'AlltoAll'
        WHEN 'reduce_scatter' THEN 'ReduceScatter'
        WHEN 'bcast' THEN 'Broadcast'
        ELSE c.name
    END,
    c.communicator, CASE WHEN c.name LIKE '%educe_scatter%' THEN c.received_bytes ELSE c.sent_bytes END
FROM mpi_calls AS c
JOIN (
    SELECT
        process_id, arg_max(device_id, operations) AS device_id,
        gpu_of(process_id, arg_max(device_id, operations)) AS gpu_id
    FROM (SELECT process_id, device_id, count(*) AS operations FROM kernel_events GROUP BY ALL)
    GROUP BY process_id
) AS g USING (process_id)
WHERE c.kind = 'collective' AND c.end_ns IS NOT NULL
    AND NOT regexp_matches(c.name, '^MPI_(I|Scan|Exscan)') AND NOT EXISTS (FROM nccl_kernels);

COMMENT ON VIEW _rank_collectives IS
    'NCCL kernels; in a program without them, the blocking MPI collectives of processes that use a GPU.';
COMMENT ON COLUMN _rank_collectives.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _rank_collectives.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN _rank_collectives.gpu_id IS
    'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _rank_collectives.stream_id IS 'CUDA stream of the kernel; 0 for MPI';
COMMENT ON COLUMN _rank_collectives.start_ns IS 'When the rank arrived';
COMMENT ON COLUMN _rank_collectives.end_ns IS 'When it left';
COMMENT ON COLUMN _rank_collectives.operation IS 'AllReduce, AllGather …, or MPI''s name; NULL where unknown';
COMMENT ON COLUMN _rank_collectives.communicator IS 'Id of the communicator; NULL where unknown';
COMMENT ON COLUMN _rank_collectives.bytes IS 'Message size, as in `nccl_kernels`; NULL where unknown';
