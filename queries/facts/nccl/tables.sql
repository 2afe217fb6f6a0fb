-- The kernels of NCCL, with what the call says that launched each, and the ranks that processes say they are.
CREATE TABLE IF NOT EXISTS facts.nccl_kernels (
    process_id BIGINT, device_id BIGINT, gpu_id BIGINT, stream_id BIGINT, start_ns BIGINT, end_ns BIGINT,
    name_id BIGINT,
    operation VARCHAR, communicator VARCHAR, bytes BIGINT
);

-- What a kernel sends and receives, where its calls are known: with whom, by its rank in the communicator.
CREATE TABLE IF NOT EXISTS facts.nccl_messages (
    process_id BIGINT, device_id BIGINT, gpu_id BIGINT, start_ns BIGINT, communicator VARCHAR, is_send BOOLEAN,
    peer BIGINT,
    bytes BIGINT, place BIGINT
);

CREATE TABLE IF NOT EXISTS facts.nccl_ranks (
    process_id BIGINT, communicator VARCHAR, rank BIGINT, ranks BIGINT, start_ns BIGINT, end_ns BIGINT, thread_id BIGINT
);
