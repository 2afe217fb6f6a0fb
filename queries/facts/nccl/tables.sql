/*
topic = "kernels"
progress = "collectives"
*/
-- The NCCL kernels, each with the arguments of the call that launched it.
CREATE TABLE IF NOT EXISTS facts.nccl_kernels (
    process_id BIGINT, device_id BIGINT, gpu_id BIGINT, stream_id BIGINT, start_ns BIGINT, end_ns BIGINT,
    name_id BIGINT,
    operation VARCHAR, communicator VARCHAR, bytes BIGINT
);

-- The messages that a kernel sends and receives, where its calls are known. `peer` is a rank in the communicator.
CREATE TABLE IF NOT EXISTS facts.nccl_messages (
    process_id BIGINT, device_id BIGINT, gpu_id BIGINT, start_ns BIGINT, communicator VARCHAR, is_send BOOLEAN,
    peer BIGINT,
    bytes BIGINT, place BIGINT
);

-- The ranks that processes state for themselves.
CREATE TABLE IF NOT EXISTS facts.nccl_ranks (
    process_id BIGINT, communicator VARCHAR, rank BIGINT, ranks BIGINT, start_ns BIGINT, end_ns BIGINT, thread_id BIGINT
);

COMMENT ON VIEW nccl_kernels IS
    'One row per NCCL kernel, with what the payload of NCCL''s NVTX range says about the call that launched it.';
COMMENT ON COLUMN nccl_kernels.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN nccl_kernels.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN nccl_kernels.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN nccl_kernels.stream_id IS 'CUDA stream, numbered by CUPTI';
COMMENT ON COLUMN nccl_kernels.start_ns IS 'When the kernel started: the rank is ready for the others';
COMMENT ON COLUMN nccl_kernels.end_ns IS 'When it ended';
COMMENT ON COLUMN nccl_kernels.name_id IS 'The kernel''s name, in `kernel_names`';
COMMENT ON COLUMN nccl_kernels.operation IS
    'AllReduce, AllGather, SendRecv …, by the kernel''s name; AlltoAll: messages to and from all ranks; Exchange: '
    'several messages in both directions, whose ranks are unknown; NULL where the name does not say';
COMMENT ON COLUMN nccl_kernels.communicator IS
    'NCCL''s id of the communicator, the same on all of its ranks; NULL without NCCL''s NVTX payloads (-t nvtx), '
    'and in graphs';
COMMENT ON COLUMN nccl_kernels.bytes IS
    'Message size as NCCL states it: what each rank sends, for a ReduceScatter what it receives, for an AlltoAll what '
    'it sends to each rank, on average; NULL where unknown';
