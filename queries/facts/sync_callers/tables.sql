/* progress = "callers" */
-- The call sites of CUDA calls that wait, allocate, free, copy or set memory, and of graph launches: an excerpt of
-- `facts.callers` and `facts.called_from` for these few calls. `facts.few_callers`: the stack of each call.
-- `facts.few_stacks`: the stacks, each with its name, and its frames from the named frame outwards. `facts.few_calls`:
-- the number of calls, the number of calls with a known place, and whether the trace has call stacks.
CREATE TABLE IF NOT EXISTS facts.few_callers (
    process_id BIGINT, correlation_id BIGINT, chain_id BIGINT, stack_id UBIGINT
);

CREATE TABLE IF NOT EXISTS facts.few_stacks (
    stack_id UBIGINT, name VARCHAR, frames VARCHAR[]
);

CREATE TABLE IF NOT EXISTS facts.few_calls (
    calls BIGINT, placed BIGINT, has_chains BOOLEAN
);
