/* progress = "call chains of Python" */
-- Python's own call stacks of CUDA calls. `facts.python_lines`: the distinct functions and lines in them.
-- `facts.python_frames`: the stacks, frame by frame, innermost first. `facts.python_chains`: the calls that the stacks
-- belong to.
CREATE TABLE IF NOT EXISTS facts.python_lines (
    frame_id INTEGER, symbol_id BIGINT, module_id BIGINT, name VARCHAR, function VARCHAR, module VARCHAR, kind VARCHAR,
    line BIGINT
);

CREATE TABLE IF NOT EXISTS facts.python_frames (
    chain_id BIGINT, depth USMALLINT, frame_id INTEGER
);

CREATE TABLE IF NOT EXISTS facts.python_chains (
    process_id BIGINT, thread_id BIGINT, start_ns BIGINT, chain_id BIGINT
);
