/*
description = "NCCL kernels; in a program without them, the blocking MPI collectives of processes that use a GPU."
[columns]
stream_id = "CUDA stream of the kernel; 0 for MPI"
start_ns = "When the rank arrived"
end_ns = "When the rank left"
operation = "AllReduce, AllGather …, or MPI's name; NULL where unknown"
communicator = "Id of the communicator; NULL where unknown"
bytes = "Message size, as in `nccl_kernels`; NULL where unknown"
*/
-- A program that communicates with MPI alone has no NCCL kernels: then its blocking collectives on the host are when
-- ranks meet. A process is on the GPU that it gives most kernels to. In an MPI_Scan or an MPI_Iallreduce, ranks do
-- not wait for all others, so these do not tell who is late.
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
