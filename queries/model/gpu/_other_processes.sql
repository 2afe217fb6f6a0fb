/*
description = "The processes that ran on GPUs, where they are several: one row; no row where only one did."
stored = true
needs = "_operation_counts HAVING count(DISTINCT process_id) > 1"
[columns]
process_ids = "The processes"
shared_gpus = "The rows of `_shared_gpus`; NULL if there are none"
*/
SELECT
    list(process_id ORDER BY process_id) AS process_ids,
    (SELECT list(g ORDER BY g.gpu_id) FROM _shared_gpus AS g) AS shared_gpus
FROM (SELECT DISTINCT process_id FROM gpu_ops)
HAVING count(*) > 1;
