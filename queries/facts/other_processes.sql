CREATE TABLE IF NOT EXISTS facts.other_processes (
    sentence VARCHAR
);

INSERT INTO facts.other_processes BY NAME
SELECT
    'other processes ran on the GPU too: --process chooses one of '
        || string_agg(process_id::VARCHAR, ', ' ORDER BY process_id) AS sentence
FROM (SELECT DISTINCT process_id FROM gpu_ops)
HAVING count(*) > 1;
