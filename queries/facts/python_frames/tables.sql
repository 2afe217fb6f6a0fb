/* progress = "call chains of Python" */
-- The chains that Python itself gave of CUDA calls. `facts.python_lines`: the functions and lines that they name, each
-- once; `facts.python_frames`: the chains, frame by frame, the innermost first; `facts.python_chains`: the calls that
-- they are of.
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
