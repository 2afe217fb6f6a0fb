/*
title = "Memsets block the host"
family = "launch"
overlaps = true
meaning = """
cudaMemset is called where cudaMemsetAsync would do, and the GPU is idle during the call."""
action = """
Use cudaMemsetAsync on the stream that needs the memory, or write the zeros in the first kernel that uses it."""
caveat = """
The call is outside the loop."""
report = "host"
*/
SELECT
    recoverable_ns,
    wall_pct,
    NULL AS place,
    counted_text(count, 'blocking memset') || ' ' || $per
        || CASE count_text(count) WHEN '1' THEN ' takes' ELSE ' take' END || ' the host ' || time_text(host_ns)
        || ', in which the GPU is idle for ' || time_text(recoverable_ns) || ' (' || share_text(wall_pct)
        || ')' AS evidence
FROM host_report
WHERE code = 'blocking_memset'
