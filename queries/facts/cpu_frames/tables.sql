/* progress = "call chains of samples" */
-- `facts.cpu_frames`: the distinct functions in the call stacks of samples and of operating system calls.
-- `facts.cpu_chains`: the stacks, frame by frame, innermost first.
CREATE TABLE IF NOT EXISTS facts.cpu_frames (
    frame_id INTEGER, symbol_id BIGINT, module_id BIGINT, name VARCHAR, function VARCHAR, module VARCHAR, kind VARCHAR,
    activity VARCHAR
);

CREATE TABLE IF NOT EXISTS facts.cpu_chains (
    of ENUM ('os', 'sample'), chain_id BIGINT, depth USMALLINT, frame_id INTEGER
);
