-- The frames of a table of chains that no table before it had.
INSERT INTO facts.frames BY NAME
WITH named AS (
    SELECT
        c.symbol AS symbol_id, c.module AS module_id,
        CASE WHEN NOT c.is_unresolved THEN s.value END AS symbol, regexp_extract(m.value, '[^/\\]*$') AS module
    FROM (
        SELECT symbol, module, bool_and(coalesce(unresolved, 0) <> 0) AS is_unresolved
        FROM raw.CUDA_CALLCHAINS
        GROUP BY ALL
    ) AS c
    LEFT JOIN raw.StringIds AS s ON s.id = c.symbol
    LEFT JOIN raw.StringIds AS m ON m.id = c.module
    WHERE NOT EXISTS (FROM facts.frames AS f WHERE f.symbol_id = c.symbol AND f.module_id = c.module)
),
resolved AS (
    SELECT symbol_id, module_id, module, CASE WHEN symbol NOT SIMILAR TO '0x[0-9a-fA-F]+|\[.*\]|' THEN symbol END AS symbol
    FROM named
),
told AS (
    SELECT *, _frame_kind(symbol, module) AS kind, _function_text(symbol) AS function FROM resolved
)
SELECT
    row_number() OVER (ORDER BY symbol, module, symbol_id, module_id) + (SELECT count(*) FROM facts.frames) AS frame_id,
    symbol_id, module_id, _frame_text(kind, function, module) AS name, function, module, kind, _cpu_activity(function, module, kind) AS activity
FROM told;
