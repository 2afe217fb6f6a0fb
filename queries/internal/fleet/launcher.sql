-- The environment variables of launchers that hold the rank of the process. No others are read.
SELECT name, value FROM raw.META_DATA_CAPTURE
WHERE is_launcher_line(value)
