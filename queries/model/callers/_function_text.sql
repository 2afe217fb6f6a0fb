/* parameters = ["symbol"] */
-- The short name of a function: without its parameters, its return type and its template's arguments.
CASE
    WHEN symbol LIKE '%operator%' THEN symbol
    ELSE coalesce(nullif(regexp_extract(regexp_extract(
        regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(
            symbol, '\(anonymous namespace\)|<unnamed>', '{anonymous}', 'g'),
            '<[^<>]*>', '', 'g'), '<[^<>]*>', '', 'g'), '<[^<>]*>', '', 'g'), '\{anonymous\}::', '', 'g'),
        '^[^(<]*'), '\S+$'), ''), symbol)
END;
