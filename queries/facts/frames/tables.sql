-- `facts.frames`: the functions that call chains name, each once. `facts.chain_frames`: the chains, frame by frame, the
-- innermost first. `facts.python_chains`: the calls that Python itself gave a backtrace of, with its chain.
CREATE TABLE IF NOT EXISTS facts.frames (
    frame_id INTEGER, symbol_id BIGINT, module_id BIGINT, name VARCHAR, function VARCHAR, module VARCHAR, kind VARCHAR, activity VARCHAR, line BIGINT
);

CREATE TABLE IF NOT EXISTS facts.chain_frames (
    of ENUM ('api', 'os', 'sample'), chain_id BIGINT, depth USMALLINT, frame_id INTEGER
);

CREATE TABLE IF NOT EXISTS facts.python_chains (
    process_id BIGINT, thread_id BIGINT, start_ns BIGINT, chain_id BIGINT
);
