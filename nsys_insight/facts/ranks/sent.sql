-- The messages that each rank sends and receives, in order.
SELECT process_id, device_id, gpu_id, start_ns, communicator, is_send, peer, bytes
FROM facts.nccl_messages
ORDER BY start_ns, place
