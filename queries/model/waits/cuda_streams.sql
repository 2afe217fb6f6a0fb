CREATE VIEW cuda_streams AS
SELECT DISTINCT
    unnest(process_ids_of(t.processId)) AS process_id, t.contextId AS context_id, t.streamId AS stream_id, t.priority, e.word AS stream_type
FROM raw.TARGET_INFO_CUDA_STREAM AS t
LEFT JOIN _enum_words AS e ON e.enum = 'stream type' AND e.id = t.flag;

COMMENT ON VIEW cuda_streams IS 'CUDA streams that existed, including unused ones.';
COMMENT ON COLUMN cuda_streams.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN cuda_streams.context_id IS 'CUDA context';
COMMENT ON COLUMN cuda_streams.stream_id IS 'CUDA stream, numbered by CUPTI';
COMMENT ON COLUMN cuda_streams.priority IS 'Lower is more urgent';
COMMENT ON COLUMN cuda_streams.stream_type IS 'default stream, non-blocking stream, null stream';
