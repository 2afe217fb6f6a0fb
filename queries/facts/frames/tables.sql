-- `facts.frames`: the functions that call chains name, each once. `facts.chain_frames`: the chains, frame by frame, the
-- innermost first.
CREATE TABLE IF NOT EXISTS facts.frames (
    frame_id INTEGER, symbol_id BIGINT, module_id BIGINT, name VARCHAR, function VARCHAR, module VARCHAR, kind VARCHAR, activity VARCHAR
);

CREATE TABLE IF NOT EXISTS facts.chain_frames (
    of ENUM ('api', 'os', 'sample'), chain_id BIGINT, depth USMALLINT, frame_id INTEGER
);
