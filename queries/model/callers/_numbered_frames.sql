-- The same with numbers, which are below those of the lines of Python.
CREATE MACRO _numbered_frames(frames) AS TABLE
SELECT
    row_number() OVER (ORDER BY symbol, module, symbol_id, module_id) AS frame_id,
    symbol_id, module_id, name, function, module, kind
FROM _named_frames(frames);
