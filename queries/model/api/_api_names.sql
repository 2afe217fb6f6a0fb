/*
description = """Names and groups of API calls. Several ids may mean one function; strings that name no function are
    here too."""
stored = true
[columns]
name_id = "The id of the recorded name, as in `strings`"
name = "The function, without its version suffix (_v7000, _ptsz)"
call_group = "What it is for: launch, graph launch, sync, copy, memset, alloc, free, graph, event, module, other"
*/
SELECT name_id, name, api_group(name) AS call_group
FROM (
    SELECT
        id AS name_id, CASE WHEN starts_with(value, 'cu') THEN api_name(value) ELSE value END AS name FROM raw.StringIds
);
