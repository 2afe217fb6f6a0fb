/* parameters = ["frames"] */
-- The names and kinds of frames. `frames` has ids of symbols and modules, and is_unresolved: no row has the symbol
-- resolved. The function that nvcc writes to launch a kernel has the kernel's name. It is not a place in the program.
WITH kernel_functions AS (
    SELECT DISTINCT _name_before_parameters(s.value) AS function
    FROM (SELECT DISTINCT demangledName AS name_id FROM unscoped.CUPTI_ACTIVITY_KIND_KERNEL) AS k
    JOIN raw.StringIds AS s ON s.id = k.name_id
),
frame_texts AS (
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
    SELECT
        *, _function_text(symbol) AS function,
        CASE
            WHEN _name_before_parameters(symbol) IN (FROM kernel_functions) THEN 'runtime'
            ELSE _frame_kind(symbol, module)
        END AS kind
    FROM resolved_symbols
)
SELECT symbol_id, module_id, symbol, module, kind, function, _frame_text(kind, function, module) AS name
FROM classified_frames;
