/*
description = "Push/pop ranges as they are nested within their thread and domain."
[columns]
range_id = "Numbers the ranges, by thread and time, outer ones first"
outer_id = "The innermost range of the same domain around it; NULL for none"
domain_id = "Number of the domain in its process, 0 for the default domain"
start_ns = "When the range was opened"
end_ns = "When the range was closed; NULL if it was open at the end of the capture"
close_ns = "end_ns for sorting: later than all for an open range, never before start_ns"
name = "The range's text"
domain = "Name of its domain; empty for the default domain"
*/
SELECT range_id, outer_id, process_id, thread_id, domain_id, start_ns, end_ns, close_ns, name, domain
FROM facts.nested_ranges
WHERE NOT is_free;
