/*
progress = "callers"
scratch = "sync_callers"
*/
-- The same as `facts.few_callers`, `few_stacks` and `few_calls`, for the calls that launched the operations which end
-- the gaps of `facts.listed_gaps`.
CREATE TABLE IF NOT EXISTS facts.gap_callers (
    process_id BIGINT, correlation_id BIGINT, chain_id BIGINT, stack_id UBIGINT
);

CREATE TABLE IF NOT EXISTS facts.gap_stacks (
    stack_id UBIGINT, name VARCHAR, frames VARCHAR[]
);

CREATE TABLE IF NOT EXISTS facts.gap_calls (
    calls BIGINT, placed BIGINT, has_chains BOOLEAN
);
