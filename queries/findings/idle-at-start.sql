/*
title = "The GPU has nothing to do at first"
family = "outside"
of = "trace"
meaning = """
The trace begins long before the first operation on the GPU: contexts, modules and memory are set up, data are loaded."""
action = """
Capture the steady state alone: cudaProfilerStart after the warm-up and --capture-range=cudaProfilerApi, or --delay; or look
at a part with --nvtx or --from."""
wrong_when = """
Start-up is what you care about."""
command = "nsys-insight idle TRACE"
*/
SELECT
    NULL AS recoverable_ns,
    avg(i.wall_pct) AS wall_pct,
    NULL AS place,
    'the first operation on the GPU begins after ' || time_text(min(i.time_ns)) || ' (' || share_text(avg(i.wall_pct)) || ' of the trace''s wall)'
        || coalesce((SELECT '; the longest calls: ' || string_agg(name || ', ' || time_text(max_ns), '; ' ORDER BY max_ns DESC, name)
            FROM (FROM api_report ORDER BY max_ns DESC, name LIMIT 2)), '') AS evidence
FROM idle_report AS i
WHERE i.host = 'before the first operation' AND EXISTS (FROM scope WHERE nvtx IS NULL AND from_ns IS NULL)
HAVING count(*) > 0
