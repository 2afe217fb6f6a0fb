CREATE VIEW nvtx_nesting AS
FROM facts.nvtx_nesting;

COMMENT ON VIEW nvtx_nesting IS 'Push/pop ranges with their place in the nesting of their thread, across NVTX domains.';
COMMENT ON COLUMN nvtx_nesting.range_id IS 'Number of the range within this trace and scope';
COMMENT ON COLUMN nvtx_nesting.parent_id IS
    'The innermost range, of any domain, that is open from its start to its end; NULL at the top';
COMMENT ON COLUMN nvtx_nesting.depth IS '1 at the top';
COMMENT ON COLUMN nvtx_nesting.path IS 'Names from the top down, joined by /';
COMMENT ON COLUMN nvtx_nesting.name IS 'Its text';
COMMENT ON COLUMN nvtx_nesting.domain IS 'Its NVTX domain; empty for the default domain';
COMMENT ON COLUMN nvtx_nesting.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN nvtx_nesting.thread_id IS 'Thread that opened it';
COMMENT ON COLUMN nvtx_nesting.start_ns IS 'When it was opened';
COMMENT ON COLUMN nvtx_nesting.end_ns IS 'When it was closed; NULL when the capture ended first';
COMMENT ON COLUMN nvtx_nesting.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
