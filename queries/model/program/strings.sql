-- nsys stores entire environments as strings: NAME=value, NAME=value, separated by zero characters.
CREATE VIEW strings AS
SELECT id AS name_id, value AS name
FROM raw.StringIds
WHERE NOT coalesce(contains(value, chr(0)) AND regexp_matches(value, '(^|\x00)[A-Za-z_][^=\x00]*='), false);

COMMENT ON VIEW strings IS 'Every string that the trace stores once and refers to by id, except environments.';
COMMENT ON COLUMN strings.name_id IS 'The id by which events refer to the string';
COMMENT ON COLUMN strings.name IS 'The string';
