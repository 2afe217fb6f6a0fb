-- The NVTX ranges of the process that are the scope. One that was open to the end lasts to the end.
CREATE OR REPLACE VIEW internal.step_named AS
SELECT
    thread_id, start_ns, $wanted AS name, $wanted AS pattern,
    CASE WHEN end_ns < 9223372036854775807 THEN end_ns ELSE (SELECT max(end_ns) FROM wall) END AS end_ns
FROM internal.scope_found
WHERE process_id = $process
