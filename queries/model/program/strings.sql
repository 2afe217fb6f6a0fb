/*
description = "Every string that the trace stores once and refers to by id, except environments."
[columns]
name_id = "The id by which events refer to the string"
name = "The string"
*/
-- nsys stores entire environments as strings: NAME=value, NAME=value, separated by zero characters.
SELECT id AS name_id, _demangled(value) AS name
FROM raw.StringIds
WHERE NOT coalesce(contains(value, chr(0)) AND regexp_extract(value, '(^|\x00)[A-Za-z_][^=\x00]*=') <> '', false);
