/* progress = "callers" */
-- Where those CUDA calls were made that wait, or that allocate, free, copy or set memory, and the launches of graphs:
-- of `facts.callers` and `facts.called_from` what is asked of these few. `facts.few_callers`: the stack of each;
-- `facts.few_stacks`: the stacks, each with what names it, and its frames from there outwards; `facts.few_calls`: how
-- many calls there are, of how many the place is known, and whether the trace has call chains.
CREATE TABLE IF NOT EXISTS facts.few_callers (
    process_id BIGINT, correlation_id BIGINT, chain_id BIGINT, stack_id UBIGINT
);

CREATE TABLE IF NOT EXISTS facts.few_stacks (
    stack_id UBIGINT, name VARCHAR, frames VARCHAR[]
);

CREATE TABLE IF NOT EXISTS facts.few_calls (
    calls BIGINT, placed BIGINT, has_chains BOOLEAN
);
