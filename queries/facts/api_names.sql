CREATE TABLE IF NOT EXISTS facts.api_names (
    name_id BIGINT, name VARCHAR, call_group VARCHAR
);

INSERT INTO facts.api_names BY NAME
SELECT name_id, name, api_group(name) AS call_group
FROM (
    SELECT
        id AS name_id, CASE WHEN starts_with(value, 'cu') THEN api_name(value) ELSE value END AS name FROM raw.StringIds
);
