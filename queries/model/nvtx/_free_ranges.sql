-- Numbers follow those of the push/pop ranges, and increase with the start on each thread.
CREATE VIEW _free_ranges AS
SELECT
    (SELECT count(*) FROM _nvtx_stacks)
        + row_number() OVER (ORDER BY process_id, thread_id, start_ns, end_ns DESC NULLS FIRST, name, domain)
        AS range_id,
    process_id, thread_id, start_ns, end_ns, greatest(start_ns, coalesce(end_ns, 9223372036854775807)) AS close_ns,
    name, domain
FROM nvtx_ranges
WHERE style = 'start/end';

COMMENT ON VIEW _free_ranges IS 'Start/end ranges, which need not nest.';
COMMENT ON COLUMN _free_ranges.range_id IS 'Number of the range, as in `nvtx_nesting`';
COMMENT ON COLUMN _free_ranges.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _free_ranges.thread_id IS 'Thread that opened it';
COMMENT ON COLUMN _free_ranges.start_ns IS 'When it was opened';
COMMENT ON COLUMN _free_ranges.end_ns IS 'When it was closed; NULL if it was open at the end of the capture';
COMMENT ON COLUMN _free_ranges.close_ns IS
    'The same for sorting: later than all for an open range, never before start_ns';
COMMENT ON COLUMN _free_ranges.name IS 'Its text';
COMMENT ON COLUMN _free_ranges.domain IS 'Its NVTX domain; empty for the default domain';
