-- Frames of one name are one place. nsys 2022 has the chain of a call in a row of its own (event class 67) with the call's id. Where Python itself gave a backtrace of a call, that counts.
INSERT INTO facts.call_places BY NAME
SELECT min(frame_id)::INTEGER AS place_id, name
FROM facts.api_frames SEMI JOIN facts.callers USING (frame_id)
GROUP BY name;

INSERT INTO facts.called_from BY NAME
WITH chained AS (
    SELECT pid_of(c.globalTid) AS process_id, c.correlationId AS correlation_id, coalesce(p.chain_id, c.callchainId) AS chain_id, c.eventClass = 67 AS is_apart
    FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME AS c
    LEFT JOIN facts.python_chains AS p ON p.start_ns = c.start AND p.thread_id = tid_of(c.globalTid) AND p.process_id = pid_of(c.globalTid)
    WHERE coalesce(p.chain_id, c.callchainId) IS NOT NULL AND c.correlationId IS NOT NULL
),
once AS (
    SELECT process_id, correlation_id, chain_id FROM chained WHERE is_apart IS NOT true
    UNION ALL
    SELECT process_id, correlation_id, min(chain_id)
    FROM (FROM chained WHERE is_apart) ANTI JOIN (FROM chained WHERE is_apart IS NOT true) USING (process_id, correlation_id)
    GROUP BY ALL
)
SELECT o.process_id, o.correlation_id, o.chain_id, p.place_id
FROM once AS o
JOIN facts.callers AS c USING (chain_id)
JOIN (
    SELECT f.frame_id, p.place_id FROM facts.api_frames AS f JOIN facts.call_places AS p USING (name)
) AS p USING (frame_id);
