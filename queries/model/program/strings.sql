CREATE VIEW strings AS
SELECT id AS name_id, value AS name
FROM raw.StringIds;

COMMENT ON VIEW strings IS 'Every string that the trace stores once and refers to by id.';
COMMENT ON COLUMN strings.name_id IS 'The id by which events refer to the string';
COMMENT ON COLUMN strings.name IS 'The string';
