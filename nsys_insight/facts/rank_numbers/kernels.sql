-- A rank is a process on a GPU: kernels of an unknown one belong to no rank.
SELECT process_id, device_id, gpu_id, stream_id, start_ns, end_ns, operation, communicator, bytes
FROM _rank_collectives
WHERE process_id IS NOT NULL AND device_id IS NOT NULL AND gpu_id IS NOT NULL
