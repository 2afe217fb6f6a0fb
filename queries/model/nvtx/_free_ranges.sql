/*
description = "Start/end ranges, which need not nest."
[columns]
range_id = "Number of the range, as in `nvtx_nesting`"
thread_id = "Thread that opened it"
start_ns = "When the range was opened"
end_ns = "When the range was closed; NULL if it was open at the end of the capture"
close_ns = "end_ns for sorting: later than all for an open range, never before start_ns"
name = "Text of the range"
domain = "NVTX domain of the range; empty for the default domain"
*/
-- Numbers follow those of the push/pop ranges, and increase with the start on each thread.
SELECT range_id, process_id, thread_id, start_ns, end_ns, close_ns, name, domain
FROM facts.nested_ranges
WHERE is_free;
