/* progress = "call chains of samples" */
-- `facts.cpu_frames`: the functions that call chains of samples and of calls of the operating system name, each once.
-- `facts.cpu_chains`: the chains, frame by frame, the innermost first.
CREATE TABLE IF NOT EXISTS facts.cpu_frames (
    frame_id INTEGER, symbol_id BIGINT, module_id BIGINT, name VARCHAR, function VARCHAR, module VARCHAR, kind VARCHAR,
    activity VARCHAR
);

CREATE TABLE IF NOT EXISTS facts.cpu_chains (
    of ENUM ('os', 'sample'), chain_id BIGINT, depth USMALLINT, frame_id INTEGER
);
