-- What the environment says of which rank the process is, and nothing else.
SELECT name, value FROM raw.META_DATA_CAPTURE
WHERE is_launchers(value)
