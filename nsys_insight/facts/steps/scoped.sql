-- The NVTX ranges of the process that are the scope. A range that was still open at the end of the capture lasts to the
-- end of the wall time.
CREATE OR REPLACE TABLE internal.step_named AS
SELECT
    thread_id, start_ns, $range_name AS name, $range_name AS pattern,
    CASE WHEN end_ns < 9223372036854775807 THEN end_ns ELSE (SELECT max(end_ns) FROM wall) END AS end_ns
FROM internal.scope_matching_ranges
WHERE process_id = $process
