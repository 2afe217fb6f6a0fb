/*
description = "The calls in `_gap_activity` that return only when their copy is done: those of `_blocking_copies`."
[columns]
correlation_id = "Joins with `_gap_activity`, together with process_id"
is_to_host = "Whether the call copied from a GPU to the host"
*/
FROM facts.listed_copies;
