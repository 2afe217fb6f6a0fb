-- Take the stacks from the facts about all calls. A place without a call stack is a stack of its own.
INSERT INTO facts.sync_callers BY NAME
SELECT p.process_id, p.correlation_id, p.chain_id, coalesce(c.signature, p.place_id) AS stack_id
FROM facts.called_from AS p
SEMI JOIN internal.chosen_calls USING (process_id, correlation_id)
LEFT JOIN facts.callers AS c USING (chain_id);

INSERT INTO facts.sync_stacks BY NAME
WITH callers AS (
    FROM facts.callers SEMI JOIN facts.sync_callers USING (chain_id)
),
chains AS (
    FROM _api_chains
),
names AS (
    FROM _api_frames
)
FROM _stacks('callers', 'chains', 'names')
UNION ALL BY NAME
SELECT place_id AS stack_id, name, [name] AS frames
FROM facts.call_places
WHERE NOT EXISTS (FROM facts.callers)
