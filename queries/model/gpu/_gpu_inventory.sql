/*
description = "The GPUs of the machine and those that were used, each once."
[columns]
gpu_id = "The machine's GPU where the trace says which, else the CUDA device number"
busy_ns = "How long it was busy; NULL where it was not used"
name = "Its name"
facts = "Its name, size, bandwidth and compute capability, as a text"
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
