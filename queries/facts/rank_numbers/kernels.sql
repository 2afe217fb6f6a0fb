SELECT process_id, device_id, gpu_id, stream_id, start_ns, end_ns, operation, communicator, bytes
FROM _rank_collectives
