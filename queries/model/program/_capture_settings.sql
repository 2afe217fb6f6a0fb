CREATE VIEW _capture_settings AS
SELECT
    max(value) FILTER (WHERE name = 'EXPORT_PRODUCT_VERSION') AS nsys_version,
    max(value) FILTER (WHERE name = 'EXPORT_SCHEMA_VERSION') AS schema_version,
    max(value) FILTER (WHERE name = 'CAPTURE_DURATION_NS')::BIGINT AS capture_ns,
    max(replace(value, 'T', ' ')) FILTER (WHERE name = 'CAPTURE_START_UTC') AS begun,
    count(*) FILTER (WHERE name LIKE '%:CUDA_SKIP_SOME_API_CALLS' AND value = 'true') > 0 AS skips_calls,
    count(*) FILTER (WHERE name LIKE '%COLLECT_CUDA_TRACE' AND value = 'true') > 0 AS traces_cuda
FROM capture;

COMMENT ON VIEW _capture_settings IS 'What the export says about the capture, one row.';
COMMENT ON COLUMN _capture_settings.nsys_version IS 'Version of nsys';
COMMENT ON COLUMN _capture_settings.schema_version IS 'Version of the export''s schema';
COMMENT ON COLUMN _capture_settings.capture_ns IS 'How long was captured';
COMMENT ON COLUMN _capture_settings.begun IS 'When, in UTC';
COMMENT ON COLUMN _capture_settings.skips_calls IS 'Whether nsys left calls out that it finds unimportant';
COMMENT ON COLUMN _capture_settings.traces_cuda IS 'Whether nsys says that it traced CUDA';
