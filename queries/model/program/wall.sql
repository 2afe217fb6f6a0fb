CREATE VIEW wall AS
SELECT start_ns, end_ns, end_ns - start_ns AS duration_ns
FROM raw.wall
WHERE end_ns > start_ns;

COMMENT ON VIEW wall IS
    'The wall time that shares refer to: from the first to the last CUDA event (API call or device activity), or '
    'the scope''s own intervals: --from to --to, the ranges of --nvtx.';
COMMENT ON COLUMN wall.start_ns IS 'Where the interval begins';
COMMENT ON COLUMN wall.end_ns IS 'Where it ends';
COMMENT ON COLUMN wall.duration_ns IS 'end_ns - start_ns';
