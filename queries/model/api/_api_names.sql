CREATE VIEW _api_names AS
FROM facts.api_names;

COMMENT ON VIEW _api_names IS
    'Names and groups of API calls. Several ids may mean one function; strings that name no function are here too.';
COMMENT ON COLUMN _api_names.name_id IS 'The id of the recorded name, as in `strings`';
COMMENT ON COLUMN _api_names.name IS 'The function, without its version suffix (_v7000, _ptsz)';
COMMENT ON COLUMN _api_names.call_group IS
    'What it is for: launch, graph launch, sync, copy, memset, alloc, free, graph, event, module, other';
