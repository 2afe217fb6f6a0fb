/*
description = "Which of the machine's GPUs a process means by a CUDA device number; empty before nsys 2024.6."
[columns]
gpu_id = "The machine's GPU, as in `gpus`"
*/
-- Two ranks may both call their GPU device 0 (CUDA_VISIBLE_DEVICES). Only newer exports tell which GPU each of them
-- means.
SELECT unnest(process_ids_of(pid)) AS process_id, cudaId AS device_id, min(gpuId) AS gpu_id
FROM raw.TARGET_INFO_CUDA_DEVICE
GROUP BY pid, cudaId;
