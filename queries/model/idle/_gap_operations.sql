/*
description = "The operations on either side of each of the `longest_gaps`."
[columns]
start_ns = "When the operation started on the GPU"
end_ns = "When the operation ended; never before start_ns"
correlation_id = "Joins with `_gap_activity`, together with process_id"
name = "A kernel's full name, or what the operation is: H2D copy, memset, graph 4"
*/
FROM facts.listed_operations;
