-- The frames of a table of call stacks that are not in `facts.cpu_frames` yet.
INSERT INTO facts.cpu_frames BY NAME
WITH frames AS (
    SELECT symbol, module, bool_and(coalesce(unresolved, 0) <> 0) AS is_unresolved
    FROM raw.SAMPLING_CALLCHAINS
    GROUP BY ALL
)
SELECT
    row_number() OVER (ORDER BY symbol, module, symbol_id, module_id)
        + (SELECT count(*) FROM facts.cpu_frames) AS frame_id,
    symbol_id, module_id, name, function, module, kind, _cpu_activity(function, module, kind) AS activity
FROM _named_frames('frames') AS n
WHERE NOT EXISTS (FROM facts.cpu_frames AS f WHERE f.symbol_id = n.symbol_id AND f.module_id = n.module_id);
