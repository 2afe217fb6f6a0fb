/*
description = "Every string that the trace stores once and refers to by id, except environments."
[columns]
name_id = "The id by which events refer to the string"
name = "The string"
*/
-- nsys stores entire environments as strings: NAME=value, NAME=value, separated by zero characters.
SELECT s.id AS name_id, coalesce(d.name, s.value) AS name
FROM raw.StringIds AS s
LEFT JOIN _demangled_names AS d ON d.name_id = s.id
WHERE NOT coalesce(
    contains(s.value, chr(0)) AND regexp_extract(s.value, '(^|\x00)[A-Za-z_][^=\x00]*=') <> '', false
);
