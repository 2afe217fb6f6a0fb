-- Operations overlap, so what matters at the start of one is the latest end so far, not the end of the one before it.
-- The GPUs' times are laid one after the other on a single line: to sort by one number takes half the memory, and two thirds
-- of the time, that a window for each GPU takes.
CREATE VIEW _gpu_reach AS
WITH reach AS (
    SELECT line_start, line_end, max(line_end) OVER (
        ORDER BY line_start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS line_reached
    FROM (SELECT on_line(gpu_id, start_ns) AS line_start, on_line(gpu_id, end_ns) AS line_end FROM _gpu_work)
)
SELECT
    gpu_on_line(line_start) AS gpu_id,
    ns_on_line(line_start) AS start_ns,
    ns_on_line(line_end) AS end_ns,
    CASE WHEN line_start >> lane_bits() = line_reached >> lane_bits() THEN ns_on_line(line_reached) END AS running_end_ns
FROM reach;

COMMENT ON VIEW _gpu_reach IS 'The operations of `_gpu_work`, each with the latest end of those before it: from this follow busy time and gaps in one pass.';
COMMENT ON COLUMN _gpu_reach.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _gpu_reach.start_ns IS 'When the operation started on the GPU';
COMMENT ON COLUMN _gpu_reach.end_ns IS 'When it ended; never before its start';
COMMENT ON COLUMN _gpu_reach.running_end_ns IS 'The latest end of the operations that started before it; NULL for the first';
