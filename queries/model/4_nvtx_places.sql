-- The state after all that happens at one instant: ranges that end there close (inner ones first), others open (outer
-- ones first), ranges of no length close; the last of these decides.
CREATE VIEW nvtx_places AS
WITH changes AS (
    SELECT process_id, thread_id, start_ns, range_id, 1 AS turn, -coalesce(end_ns, 9223372036854775807) AS order_ns, range_id AS order_id
    FROM nvtx_nesting
    UNION ALL
    SELECT process_id, thread_id, end_ns, parent_id, CASE WHEN end_ns > start_ns THEN 0 ELSE 2 END, -start_ns, -range_id
    FROM nvtx_nesting
    WHERE end_ns IS NOT NULL
)
SELECT process_id, thread_id, start_ns, range_id
FROM changes
QUALIFY row_number() OVER (PARTITION BY process_id, thread_id, start_ns ORDER BY turn DESC, order_ns DESC, order_id DESC) = 1;

COMMENT ON VIEW nvtx_places IS 'Which push/pop range a thread is in, from each instant on at which that changes: ASOF JOIN it with anything on the thread.';
COMMENT ON COLUMN nvtx_places.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN nvtx_places.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN nvtx_places.start_ns IS 'From when on';
COMMENT ON COLUMN nvtx_places.range_id IS 'The innermost open range, as in `nvtx_nesting`; NULL outside all';
