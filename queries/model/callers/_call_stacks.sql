/* parameters = ["most"] */
-- `call_places` with the stack: at most `most` frames, from the place outwards. Each list of frames is turned into text
-- once.
WITH callers AS (
    FROM facts.callers
),
chains AS (
    FROM _api_chains
),
names AS (
    FROM _api_frames
),
stack_texts AS MATERIALIZED (
    SELECT stack_id AS signature, _stack_text(frames, most) AS name FROM _stacks('callers', 'chains', 'names')
)
SELECT p.process_id, p.correlation_id, coalesce(t.name, p.name) AS name
FROM call_places AS p
LEFT JOIN facts.callers AS c USING (chain_id)
LEFT JOIN stack_texts AS t USING (signature);
