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
FROM _stacks('callers', 'chains', 'names');

INSERT INTO facts.sync_calls BY NAME
SELECT
    count(*) AS calls,
    (
        SELECT count(*)
        FROM internal.chosen_calls
        SEMI JOIN facts.sync_callers USING (process_id, correlation_id)
        WHERE is_call
    ) AS placed,
    true AS has_chains
FROM internal.chosen_calls
WHERE is_call;
