-- Operations overlap, so what matters at the start of one is the latest end so far, not the end of the one before it.
CREATE VIEW gpu_reach AS
SELECT
    gpu_id,
    start_ns,
    end_ns,
    max(end_ns) OVER (
        PARTITION BY gpu_id ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS reached_ns
FROM gpu_work;

COMMENT ON VIEW gpu_reach IS 'The operations of `gpu_work`, each with the latest end of those before it: from this follow busy time and gaps in one pass.';
COMMENT ON COLUMN gpu_reach.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN gpu_reach.start_ns IS 'When the operation started on the GPU';
COMMENT ON COLUMN gpu_reach.end_ns IS 'When it ended; never before its start';
COMMENT ON COLUMN gpu_reach.reached_ns IS 'The latest end of the operations that started before it; NULL for the first';
