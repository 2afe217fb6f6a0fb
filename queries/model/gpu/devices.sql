-- Two ranks may both call their GPU device 0 (CUDA_VISIBLE_DEVICES). Only newer exports tell which GPU each of them
-- means.
CREATE VIEW devices AS
SELECT unnest(process_ids_of(pid)) AS process_id, cudaId AS device_id, min(gpuId) AS gpu_id
FROM raw.TARGET_INFO_CUDA_DEVICE
GROUP BY pid, cudaId;

COMMENT ON VIEW devices IS
    'Which of the machine''s GPUs a process means by a CUDA device number; empty before nsys 2024.6.';
COMMENT ON COLUMN devices.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN devices.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN devices.gpu_id IS 'The machine''s GPU, as in `gpus`';
