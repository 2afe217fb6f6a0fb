/*
description = """What the enum values of the trace mean, in words: from the file's own tables, else as nsys documents
    them."""
stored = true
[columns]
enum = "Which enum: copy kind, memory, launch type, memory event, stream type, severity, diagnostic source"
id = "The number in the trace"
word = "The word for it"
*/
-- The file's own enum tables take precedence. Old exports lack them. Then the numbering that nsys documents applies.
-- Its memory kinds count from pageable = 0, unlike CUPTI's, in every export seen since 2021.
WITH documented_words(enum, id, word) AS (
    VALUES ('copy kind', 0, 'unknown'), ('copy kind', 1, 'H2D'), ('copy kind', 2, 'D2H'), ('copy kind', 3, 'H2A'),
        ('copy kind', 4, 'A2H'), ('copy kind', 5, 'A2A'), ('copy kind', 6, 'A2D'), ('copy kind', 7, 'D2A'),
        ('copy kind', 8, 'D2D'), ('copy kind', 9, 'H2H'), ('copy kind', 10, 'P2P'), ('copy kind', 11, 'UM H2D'),
        ('copy kind', 12, 'UM D2H'), ('copy kind', 13, 'UM D2D'),
        ('memory', 0, 'pageable'), ('memory', 1, 'pinned'), ('memory', 2, 'device'), ('memory', 3, 'array'),
        ('memory', 4, 'managed'), ('memory', 5, 'device static'), ('memory', 6, 'managed static'),
        ('memory', 7, 'unknown'),
        ('migration', 0, 'unknown'), ('migration', 1, 'prefetch'), ('migration', 2, 'page fault'),
        ('migration', 3, 'speculative'), ('migration', 4, 'eviction'), ('migration', 5, 'access counters'),
        ('launch type', 0, 'unknown'), ('launch type', 1, 'regular'), ('launch type', 2, 'coop single device'),
        ('launch type', 3, 'coop multi device'),
        ('memory event', 0, 'allocation'), ('memory event', 1, 'deallocation'),
        ('stream type', 0, 'unknown stream type'), ('stream type', 1, 'default stream'),
        ('stream type', 2, 'non-blocking stream'), ('stream type', 3, 'null stream'),
        ('severity', 0, 'unknown'), ('severity', 1, 'info'), ('severity', 2, 'warning'), ('severity', 3, 'error'),
        ('severity', 4, 'verbose'),
        ('diagnostic source', 0, 'unknown source'), ('diagnostic source', 1, 'injection'),
        ('diagnostic source', 2, 'daemon'), ('diagnostic source', 3, 'analysis')
),
file_words AS (
    SELECT 'copy kind' AS enum, id, CASE WHEN label = 'Unknown' THEN 'unknown' ELSE copy_kind_word(label) END AS word
    FROM raw.ENUM_CUDA_MEMCPY_OPER
    UNION ALL SELECT 'memory', id, lower(label) FROM raw.ENUM_CUDA_MEM_KIND
    UNION ALL SELECT 'migration', id,
        CASE
            WHEN label LIKE 'User%' THEN 'prefetch' WHEN label LIKE 'Speculative%' THEN 'speculative' ELSE lower(label)
        END
    FROM raw.ENUM_CUDA_UNIF_MEM_MIGRATION
    UNION ALL SELECT 'launch type', id, lower(label) FROM raw.ENUM_CUDA_KERNEL_LAUNCH_TYPE
    UNION ALL SELECT 'launch type', id, lower(label) FROM raw.ENUM_CUDA_KRENEL_LAUNCH_TYPE
    UNION ALL SELECT 'memory event', id, lower(label) FROM raw.ENUM_CUDA_DEV_MEM_EVENT_OPER
    UNION ALL SELECT 'stream type', id, lower(label) FROM raw.ENUM_CUPTI_STREAM_TYPE
    UNION ALL SELECT 'severity', id, lower(label) FROM raw.ENUM_DIAGNOSTIC_SEVERITY_LEVEL
    UNION ALL SELECT 'diagnostic source', id, lower(label) FROM raw.ENUM_DIAGNOSTIC_SOURCE_TYPE
)
SELECT enum, id, min(word) AS word FROM file_words GROUP BY ALL
UNION ALL
SELECT enum, id, word FROM documented_words ANTI JOIN file_words USING (enum, id);
