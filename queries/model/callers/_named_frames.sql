/* parameters = ["frames"] */
-- The names and kinds of frames. `frames` has ids of symbols and modules, and is_unresolved: no row has the symbol
-- resolved.
WITH frame_texts AS (
    SELECT
        c.symbol AS symbol_id, c.module AS module_id,
        CASE WHEN NOT c.is_unresolved THEN s.value END AS symbol, regexp_extract(m.value, '[^/\\]*$') AS module
    FROM query_table(frames) AS c
    LEFT JOIN raw.StringIds AS s ON s.id = c.symbol
    LEFT JOIN raw.StringIds AS m ON m.id = c.module
),
resolved_symbols AS (
    SELECT
        symbol_id, module_id, module, CASE WHEN symbol NOT SIMILAR TO '0x[0-9a-fA-F]+|\[.*\]|' THEN symbol END AS symbol
    FROM frame_texts
),
classified_frames AS (
    SELECT *, _frame_kind(symbol, module) AS kind, _function_text(symbol) AS function FROM resolved_symbols
)
SELECT symbol_id, module_id, symbol, module, kind, function, _frame_text(kind, function, module) AS name
FROM classified_frames;
