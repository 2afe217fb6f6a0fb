/*
description = """One row per recorded call of a library: of cuDNN and cuBLAS with -t cudnn,cublas, of the encoder and
    decoders of video and images with -t nvvideo, of others by the NVTX ranges of their domain."""
[columns]
start_ns = "When the call began"
end_ns = "When the call returned"
library = "cuDNN, cuBLAS, NVENC, NVDEC, nvJPEG, or the NVTX domain, such as NCCL or CCCL"
name = "The function, or the range's text"
*/
WITH event_rows AS (
    SELECT 'cuDNN' AS library, * FROM raw.CUDNN_EVENTS
    UNION ALL
    SELECT 'cuBLAS', * FROM raw.CUBLAS_EVENTS
    UNION ALL
    SELECT 'NVENC', * FROM raw.NVVIDEO_ENCODER_API
    UNION ALL
    SELECT 'NVDEC', * FROM raw.NVVIDEO_DECODER_API
    UNION ALL
    SELECT 'nvJPEG', * FROM raw.NVVIDEO_JPEG_API
)
SELECT
    e.start AS start_ns, e."end" AS end_ns, duration(e.start, e."end") AS duration_ns, e.library, n.value AS name,
    pid_of(e.globalTid) AS process_id, tid_of(e.globalTid) AS thread_id
FROM event_rows AS e
LEFT JOIN raw.StringIds AS n ON n.id = e.nameId
UNION ALL
SELECT start_ns, end_ns, duration_ns, domain, name, process_id, thread_id
FROM nvtx_ranges
WHERE end_ns IS NOT NULL AND is_library_domain(domain);
