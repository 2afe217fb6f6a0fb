CREATE OR REPLACE TABLE internal.chain_rows AS
FROM raw.CUDA_CALLCHAINS WHERE id IN (SELECT chain_id FROM internal.chosen_chains);
