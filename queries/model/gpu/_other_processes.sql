/*
description = """The processes that ran on GPUs, where they, or their CUDA contexts, are several: one row; no row where
    it is one context, or each has a GPU of its own."""
stored = true
needs = """_operation_counts LEFT JOIN _contexts USING (process_id, device_id)
    HAVING count(DISTINCT process_id) > 1 OR count(DISTINCT context_id) > 1"""
[columns]
process_ids = "The processes; NULL for one"
shared_gpus = "The rows of `_shared_gpus` with several processes; NULL if there are none"
context_gpus = "The rows of `_shared_gpus` with contexts of one process that take turns; NULL if there are none"
contexts_in_turn = "The most contexts, of one or several processes, that take turns on a GPU; NULL if none do"
*/
SELECT
    CASE WHEN p.processes > 1 THEN p.process_ids END AS process_ids,
    list(g ORDER BY g.gpu_id) FILTER (g.processes > 1) AS shared_gpus,
    list(g ORDER BY g.gpu_id) FILTER (g.processes = 1 AND g.turns IS NOT NULL) AS context_gpus,
    max(g.contexts) FILTER (g.turns IS NOT NULL) AS contexts_in_turn
FROM (
    SELECT count(*) AS processes, list(process_id ORDER BY process_id) AS process_ids
    FROM (SELECT DISTINCT process_id FROM gpu_ops)
) AS p
LEFT JOIN _shared_gpus AS g ON true
GROUP BY p.processes, p.process_ids
HAVING coalesce(process_ids::VARCHAR, context_gpus::VARCHAR) IS NOT NULL;
