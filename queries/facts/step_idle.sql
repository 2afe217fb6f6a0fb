CREATE TABLE IF NOT EXISTS facts.step_idle (
    step BIGINT, gpu_id BIGINT, cause VARCHAR, host VARCHAR, idle_ns BIGINT
);

INSERT INTO facts.step_idle BY NAME
WITH gaps AS NOT MATERIALIZED (
    FROM _idle_time
),
windows AS (
    SELECT start_ns, end_ns FROM steps WHERE phase = 'steady'
)
SELECT s.step, i.gpu_id, i.cause, i.host, i.idle_ns
FROM _idle_in('gaps', 'windows') AS i
JOIN steps AS s ON s.start_ns = i.window_ns AND s.phase = 'steady'
JOIN step_gpus AS g ON g.step = s.step AND g.gpu_id = i.gpu_id;
