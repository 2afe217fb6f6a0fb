-- Which rank the launcher said that the profiled process is, of how many: nothing else of the environment is looked at.
SELECT regexp_extract(value, '^(\w+)=', 1) AS name, regexp_extract(value, '([0-9]+)"?$', 1)::BIGINT AS number
FROM raw.META_DATA_CAPTURE
WHERE is_launchers(value)
