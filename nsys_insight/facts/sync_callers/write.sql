INSERT INTO facts.sync_callers BY NAME
SELECT o.process_id, o.correlation_id, o.chain_id, c.signature AS stack_id
FROM internal.chosen_chains AS o
JOIN internal.chain_callers AS c USING (chain_id);

INSERT INTO facts.sync_stacks BY NAME
WITH callers AS (
    FROM internal.chain_callers
),
chains AS (
    FROM internal.chain_frames
),
names AS (
    FROM internal.chain_names
)
FROM _stacks('callers', 'chains', 'names')
