CREATE VIEW library_calls AS
WITH event_rows AS (
    SELECT 'cuDNN' AS library, * FROM raw.CUDNN_EVENTS
    UNION ALL
    SELECT 'cuBLAS', * FROM raw.CUBLAS_EVENTS
)
SELECT
    e.start AS start_ns, e."end" AS end_ns, duration(e.start, e."end") AS duration_ns, e.library, n.value AS name,
    pid_of(e.globalTid) AS process_id, tid_of(e.globalTid) AS thread_id
FROM event_rows AS e
LEFT JOIN raw.StringIds AS n ON n.id = e.nameId
UNION ALL
SELECT start_ns, end_ns, duration_ns, domain, name, process_id, thread_id
FROM nvtx_ranges
WHERE end_ns IS NOT NULL AND regexp_matches(
    domain, '(?i)^(lib)?(cccl|cublas|cudf|cudnn|cudss|cufft|curand|cusolver|cusparse|cutensor|nccl|npp|nvjpeg|nvshmem)'
);

COMMENT ON VIEW library_calls IS
    'One row per recorded call of a library: of cuDNN and cuBLAS with -t cudnn,cublas, of others by the NVTX ranges of '
    'their domain.';
COMMENT ON COLUMN library_calls.start_ns IS 'When it began';
COMMENT ON COLUMN library_calls.end_ns IS 'When it ended';
COMMENT ON COLUMN library_calls.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN library_calls.library IS 'cuDNN, cuBLAS, or the NVTX domain, such as NCCL or CCCL';
COMMENT ON COLUMN library_calls.name IS 'The function, or the range''s text';
COMMENT ON COLUMN library_calls.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN library_calls.thread_id IS 'Operating system''s thread id';
