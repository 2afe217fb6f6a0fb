INSERT INTO facts.api_frames BY NAME
WITH frames AS (
    SELECT symbol, module, bool_and(coalesce(unresolved, 0) <> 0) AS is_unresolved
    FROM raw.CUDA_CALLCHAINS
    GROUP BY ALL
)
SELECT
    row_number() OVER (ORDER BY symbol, module, symbol_id, module_id) AS frame_id,
    symbol_id, module_id, name, function, module, kind
FROM _named_frames('frames');
