/*
description = "What the export says about the capture, one row."
[columns]
nsys_version = "Version of nsys"
schema_version = "Version of the export's schema"
capture_ns = "How long was captured"
begun = "When, in UTC"
skips_calls = "Whether nsys left calls out that it finds unimportant"
traces_cuda = "Whether nsys says that it traced CUDA"
traces_nvtx = "Whether nsys says that it traced NVTX"
is_wsl = "Whether the program ran under WSL2: Linux with a driver of Windows"
*/
-- None of these settings is private, so they are read from the raw tables: the view `capture` masks all settings first.
-- Since version 470, the versions of drivers of Linux have three numbers (580.65.06), those of Windows two (576.57).
WITH settings AS (
    SELECT name, value FROM raw.META_DATA_EXPORT
    UNION ALL
    SELECT name, value FROM raw.EXPORT_META_DATA
    UNION ALL
    SELECT name, value FROM raw.META_DATA_CAPTURE
),
systems AS (
    SELECT
        count(*) FILTER (
            name = 'NvDriverVersion' AND regexp_full_match(value, '[0-9]{3}\.[0-9]{2}')
                AND try_cast(split_part(value, '.', 1) AS INTEGER) >= 470
        ) > 0
        AND count(*) FILTER (name = 'OsDescription' AND value ILIKE '%windows%') = 0
        AND count(*) FILTER (name = 'OsDescription') > 0
        OR count(*) FILTER (name = 'KernelVersion' AND value ILIKE '%microsoft%') > 0 AS is_wsl
    FROM raw.TARGET_INFO_SYSTEM_ENV
)
SELECT
    max(value) FILTER (name = 'EXPORT_PRODUCT_VERSION') AS nsys_version,
    max(value) FILTER (name = 'EXPORT_SCHEMA_VERSION') AS schema_version,
    (SELECT max(duration) FROM raw.ANALYSIS_DETAILS) AS capture_ns,
    (SELECT max(replace(utcTime, 'T', ' ')) FROM raw.TARGET_INFO_SESSION_START_TIME) AS begun,
    count(*) FILTER (name LIKE '%:CUDA_SKIP_SOME_API_CALLS' AND value = 'true') > 0 AS skips_calls,
    -- From version 2025.6, only the type of events says it.
    count(*) FILTER (
        name LIKE '%COLLECT_CUDA_TRACE' AND value = 'true' OR name = 'CAPTURE_EVENT_TYPE' AND value = 'Cuda'
    ) > 0 AS traces_cuda,
    count(*) FILTER (name LIKE '%COLLECT_NVTX_TRACE' AND value = 'true') > 0 AS traces_nvtx,
    (SELECT is_wsl FROM systems) AS is_wsl
FROM settings;
