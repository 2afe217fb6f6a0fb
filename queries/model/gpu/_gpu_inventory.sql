/*
description = "The GPUs of the machine and those that were used, each once."
[columns]
busy_ns = "GPU busy time; NULL where the GPU was not used"
name = "Name of the GPU"
facts = "Name, size, bandwidth and compute capability of the GPU, as a text"
*/
SELECT
    coalesce(u.gpu_id, g.gpu_id) AS gpu_id,
    u.busy_ns,
    g.name,
    concat_ws(
        ', ', g.name, g.sm_count || ' SMs',
        round(g.memory_bytes / 1073741824, 1) || ' GiB'
            || coalesce(' at ' || round(g.memory_bytes_per_s / 1e9)::BIGINT || ' GB/s', ''),
        'compute capability ' || g.compute_capability
    ) AS facts
FROM used_gpus AS u
FULL JOIN (FROM gpus QUALIFY row_number() OVER (PARTITION BY gpu_id ORDER BY name, pci_bus) = 1) AS g USING (gpu_id);
