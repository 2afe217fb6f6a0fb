/*
description = "What a report about one process says where several ran on GPUs: one row; no row where only one did."
stored = true
[columns]
sentence = "Which other processes ran on GPUs, as a sentence"
*/
SELECT
    'other processes ran on the GPU too: --process chooses one of '
        || string_agg(process_id::VARCHAR, ', ' ORDER BY process_id)
        || coalesce('; ' || (SELECT string_agg(sentence, '; ') FROM _shared_gpus), '') AS sentence
FROM (SELECT DISTINCT process_id FROM gpu_ops)
HAVING count(*) > 1;
