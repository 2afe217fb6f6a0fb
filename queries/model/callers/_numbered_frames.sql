/* parameters = ["chain_rows"] */
-- The functions in rows of chains (symbol, module, unresolved), each once, with a number; after them the lines of
-- Python code.
WITH frames AS (
    SELECT symbol, module, bool_and(coalesce(unresolved, 0) <> 0) AS is_unresolved
    FROM query_table(chain_rows)
    GROUP BY ALL
)
SELECT
    row_number() OVER (ORDER BY symbol, module, symbol_id, module_id) AS frame_id,
    symbol_id, module_id, name, function, module, kind, NULL::BIGINT AS line
FROM _named_frames('frames')
UNION ALL BY NAME
FROM facts.python_lines;
