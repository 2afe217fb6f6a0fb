-- The functions that call chains of CUDA calls name, each once, and the lines of Python; the chains themselves stay where they are, for
-- there may be hundreds of millions of frames in them.
CREATE TABLE IF NOT EXISTS facts.api_frames (
    frame_id INTEGER, symbol_id BIGINT, module_id BIGINT, name VARCHAR, function VARCHAR, module VARCHAR, kind VARCHAR, line BIGINT
);

INSERT INTO facts.api_frames BY NAME
WITH frames AS (
    SELECT symbol, module, bool_and(coalesce(unresolved, 0) <> 0) AS is_unresolved
    FROM raw.CUDA_CALLCHAINS
    GROUP BY ALL
)
SELECT frame_id, symbol_id, module_id, name, function, module, kind, NULL::BIGINT AS line FROM _numbered_frames('frames')
UNION ALL BY NAME
FROM facts.python_lines;
