CREATE VIEW nvtx_places AS
FROM facts.nvtx_places;

COMMENT ON VIEW nvtx_places IS
    'Which push/pop range a thread is in, from each instant at which that changes: ASOF JOIN it with anything on '
    'the thread.';
COMMENT ON COLUMN nvtx_places.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN nvtx_places.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN nvtx_places.start_ns IS 'From when on';
COMMENT ON COLUMN nvtx_places.range_id IS
    'The innermost open range (of any domain, the one that opened last), as in `nvtx_nesting`; NULL outside all ranges';
