/* topic = "api" */
CREATE TABLE IF NOT EXISTS facts.api_names (
    name_id BIGINT, name VARCHAR, call_group VARCHAR
);

INSERT INTO facts.api_names BY NAME
SELECT name_id, name, api_group(name) AS call_group
FROM (
    SELECT
        id AS name_id, CASE WHEN starts_with(value, 'cu') THEN api_name(value) ELSE value END AS name FROM raw.StringIds
);

COMMENT ON VIEW _api_names IS
    'Names and groups of API calls. Several ids may mean one function; strings that name no function are here too.';
COMMENT ON COLUMN _api_names.name_id IS 'The id of the recorded name, as in `strings`';
COMMENT ON COLUMN _api_names.name IS 'The function, without its version suffix (_v7000, _ptsz)';
COMMENT ON COLUMN _api_names.call_group IS
    'What it is for: launch, graph launch, sync, copy, memset, alloc, free, graph, event, module, other';
