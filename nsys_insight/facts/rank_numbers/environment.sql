-- The launcher's variables with the rank of the profiled process and the number of ranks. Nothing else of the
-- environment is read.
SELECT regexp_extract(value, '^(\w+)=', 1) AS name, regexp_extract(value, '([0-9]+)"?$', 1)::BIGINT AS number
FROM raw.META_DATA_CAPTURE
WHERE is_launcher_line(value)
