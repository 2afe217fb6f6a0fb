/*
description = """Ranges with their place in the nesting of their thread, across NVTX domains. Start/end ranges do not
    nest."""
[columns]
range_id = "Number of the range within this trace and scope"
parent_id = "The innermost range, of any domain, that is open from its start to its end; NULL at the top"
depth = "1 at the top"
path = "Names from the top down, joined by /; after 64 names, … stands for all deeper ranges together"
name = "Text of the range"
domain = "NVTX domain of the range; empty for the default domain"
process_id = "Operating system's process id"
thread_id = "Thread that opened it"
start_ns = "When the range was opened"
end_ns = "When the range was closed; NULL when the capture ended first"
duration_ns = "end_ns - start_ns; 0 where it ends before it starts"
style = "push/pop (nested, one thread) or start/end (free)"
*/
SELECT
    r.range_id, r.parent_id, r.depth, p.path, r.name, r.domain, r.process_id, r.thread_id, r.start_ns, r.end_ns,
    duration(r.start_ns, r.end_ns) AS duration_ns,
    CASE WHEN r.is_free THEN 'start/end' ELSE 'push/pop' END AS style
FROM facts.nested_ranges AS r JOIN facts.nvtx_paths AS p USING (path_id);
