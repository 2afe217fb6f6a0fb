-- `facts.api_frames`: the functions that call chains of CUDA calls name, each once; the chains themselves stay where they are, for
-- there may be hundreds of millions of frames in them. `facts.python_frames`: the chains that Python itself gave, frame by frame,
-- the innermost first. `facts.python_chains`: the calls that it gave them of.
CREATE TABLE IF NOT EXISTS facts.api_frames (
    frame_id INTEGER, symbol_id BIGINT, module_id BIGINT, name VARCHAR, function VARCHAR, module VARCHAR, kind VARCHAR, line BIGINT
);

CREATE TABLE IF NOT EXISTS facts.python_frames (
    chain_id BIGINT, depth USMALLINT, frame_id INTEGER
);

CREATE TABLE IF NOT EXISTS facts.python_chains (
    process_id BIGINT, thread_id BIGINT, start_ns BIGINT, chain_id BIGINT
);
