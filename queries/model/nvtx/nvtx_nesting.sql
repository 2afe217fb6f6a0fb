/*
description = """Ranges with their place in the nesting of their thread, across NVTX domains. Start/end ranges do not
    nest."""
columns_of = "nvtx_ranges"
[columns]
range_id = "Number of the range within this trace and scope"
parent_id = "The innermost range, of any domain, that is open from its start to its end; NULL at the top"
depth = "1 at the top"
path = "Names from the top down, joined by /; after 64 names, … stands for all deeper ranges together"
*/
SELECT
    r.range_id, r.parent_id, r.depth, p.path, r.name, r.domain, r.process_id, r.thread_id, r.start_ns, r.end_ns,
    duration(r.start_ns, r.end_ns) AS duration_ns,
    CASE WHEN r.is_free THEN 'start/end' ELSE 'push/pop' END AS style
FROM facts.nested_ranges AS r JOIN facts.nvtx_paths AS p USING (path_id);
