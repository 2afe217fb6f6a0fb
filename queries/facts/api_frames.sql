/* progress = "call chains" */
-- The distinct functions in the call stacks of CUDA calls, and the lines of Python. The stacks themselves stay in the
-- raw tables: they may have hundreds of millions of frames.
CREATE TABLE IF NOT EXISTS facts.api_frames (
    frame_id INTEGER, symbol_id BIGINT, module_id BIGINT, name VARCHAR, function VARCHAR, module VARCHAR, kind VARCHAR,
    line BIGINT
);

INSERT INTO facts.api_frames BY NAME
WITH chain_rows AS (
    FROM raw.CUDA_CALLCHAINS
)
FROM _numbered_frames('chain_rows');
