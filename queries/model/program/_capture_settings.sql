/*
description = "What the export says about the capture, one row."
[columns]
nsys_version = "Version of nsys"
schema_version = "Version of the export's schema"
capture_ns = "How long was captured"
begun = "When, in UTC"
skips_calls = "Whether nsys left calls out that it finds unimportant"
traces_cuda = "Whether nsys says that it traced CUDA"
*/
SELECT
    max(value) FILTER (WHERE name = 'EXPORT_PRODUCT_VERSION') AS nsys_version,
    max(value) FILTER (WHERE name = 'EXPORT_SCHEMA_VERSION') AS schema_version,
    max(value) FILTER (WHERE name = 'CAPTURE_DURATION_NS')::BIGINT AS capture_ns,
    max(replace(value, 'T', ' ')) FILTER (WHERE name = 'CAPTURE_START_UTC') AS begun,
    count(*) FILTER (WHERE name LIKE '%:CUDA_SKIP_SOME_API_CALLS' AND value = 'true') > 0 AS skips_calls,
    count(*) FILTER (WHERE name LIKE '%COLLECT_CUDA_TRACE' AND value = 'true') > 0 AS traces_cuda
FROM capture;
