-- Frames with the same name are one place.
INSERT INTO facts.call_places BY NAME
SELECT min(frame_id)::INTEGER AS place_id, name
FROM _api_frames SEMI JOIN facts.callers USING (frame_id)
GROUP BY name;

INSERT INTO facts.called_from BY NAME
WITH chained_calls AS (
    FROM _chained_calls
)
SELECT o.process_id, o.correlation_id, o.chain_id, p.place_id
FROM _chain_of_each('chained_calls') AS o
JOIN facts.callers AS c USING (chain_id)
JOIN (
    SELECT f.frame_id, p.place_id FROM _api_frames AS f JOIN facts.call_places AS p USING (name)
) AS p USING (frame_id);
