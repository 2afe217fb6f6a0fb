CREATE OR REPLACE TABLE internal.chosen_chains AS
WITH chained_calls AS MATERIALIZED (
    FROM _chained_calls SEMI JOIN internal.chosen_calls USING (process_id, correlation_id)
)
FROM _chain_of_each('chained_calls');
