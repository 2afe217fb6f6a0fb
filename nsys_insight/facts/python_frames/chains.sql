-- Python frames with their lines. Frames of installed packages are of the kind library. Chains of Python have negative
-- ids, and its lines have ids from 1073741824 on.
INSERT INTO facts.python_lines BY NAME
WITH named_frames AS (
    SELECT
        p.function_id, p.file_id, p.line,
        replace(replace(replace(f.value, '&lt;', '<'), '&gt;', '>'), '&amp;', '&') AS function,
        m.value AS path
    FROM (SELECT DISTINCT function_id, file_id, line FROM python_rows) AS p
    LEFT JOIN raw.StringIds AS f ON f.id = p.function_id
    LEFT JOIN raw.StringIds AS m ON m.id = p.file_id
)
SELECT
    row_number() OVER (ORDER BY path, line, function, function_id) + 1073741824 AS frame_id,
    function_id AS symbol_id, file_id AS module_id,
    coalesce(function, '[Unknown]') || ' (' || coalesce(regexp_extract(path, '[^/\\]*$'), '[Unknown]') || ':'
        || line || ')' AS name,
    function, regexp_extract(path, '[^/\\]*$') AS module, line,
    CASE
        WHEN path LIKE '<%' THEN 'interpreter'
        WHEN regexp_matches(path, '[/\\](site-packages|dist-packages|lib(64)?[/\\]python[0-9.]*|Lib)[/\\]')
            THEN 'library'
        ELSE 'python'
    END AS kind
FROM named_frames;

INSERT INTO facts.python_frames BY NAME
SELECT p.chain_id, p.depth::USMALLINT AS depth, f.frame_id
FROM python_rows AS p
JOIN facts.python_lines AS f ON f.symbol_id = p.function_id AND f.module_id = p.file_id AND f.line = p.line;

INSERT INTO facts.python_chains BY NAME
SELECT process_id, thread_id, start_ns, chain_id FROM python_calls;
