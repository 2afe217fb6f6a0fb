-- The GPUs' times are laid one after the other on a single line, to be sorted by one number. One number for a call, too: there is
-- one call to a correlation id (see nsys_insight/ingest/raw.py).
CREATE VIEW _gpu_line AS
SELECT
    on_line(gpu_id, start_ns) AS place, on_line(gpu_id, end_ns) AS until,
    call_of(correlation_id, process_id) AS call
FROM _gpu_work;

COMMENT ON VIEW _gpu_line IS 'The operations of `_gpu_work`, with the times of all GPUs on a single line.';
COMMENT ON COLUMN _gpu_line.place IS 'Where it started, on the line';
COMMENT ON COLUMN _gpu_line.until IS 'Where it ended, on the line';
COMMENT ON COLUMN _gpu_line.call IS 'Its launch call, by one number';
