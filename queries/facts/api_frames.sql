/* progress = "call chains" */
-- The functions that call chains of CUDA calls name, each once, and the lines of Python; the chains themselves stay
-- where they are, for there may be hundreds of millions of frames in them.
CREATE TABLE IF NOT EXISTS facts.api_frames (
    frame_id INTEGER, symbol_id BIGINT, module_id BIGINT, name VARCHAR, function VARCHAR, module VARCHAR, kind VARCHAR,
    line BIGINT
);

INSERT INTO facts.api_frames BY NAME
WITH chain_rows AS (
    FROM raw.CUDA_CALLCHAINS
)
FROM _numbered_frames('chain_rows');
