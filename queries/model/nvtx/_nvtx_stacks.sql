CREATE VIEW _nvtx_stacks AS
FROM facts.nvtx_stacks;

COMMENT ON VIEW _nvtx_stacks IS
    'Push/pop ranges as they are nested within their thread and domain: what `nvtx_nesting` is made of.';
COMMENT ON COLUMN _nvtx_stacks.range_id IS 'Numbers the ranges, by thread and time, outer ones first';
COMMENT ON COLUMN _nvtx_stacks.outer_id IS 'The innermost range of the same domain around it; NULL for none';
COMMENT ON COLUMN _nvtx_stacks.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _nvtx_stacks.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN _nvtx_stacks.domain_id IS 'Number of the domain in its process, 0 for the default domain';
COMMENT ON COLUMN _nvtx_stacks.start_ns IS 'When the range was opened';
COMMENT ON COLUMN _nvtx_stacks.end_ns IS 'When it was closed; NULL if it was open at the end of the capture';
COMMENT ON COLUMN _nvtx_stacks.close_ns IS
    'The same for sorting: later than all for an open range, never before start_ns';
COMMENT ON COLUMN _nvtx_stacks.name IS 'The range''s text';
COMMENT ON COLUMN _nvtx_stacks.domain IS 'Name of its domain; empty for the default domain';
