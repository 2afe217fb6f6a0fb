/*
description = """The 1,000 longest of `gpu_gaps`, or with --min-gap all that are at least that long: those that the
    report `gaps` lists."""
[columns]
gap_id = "1 for the longest gap, 2 for the next; among gaps of equal length, the earlier first"
start_ns = "When the GPU became idle"
end_ns = "When the next operation started"
duration_ns = "end_ns - start_ns"
running_end_ns = "When the operations before it ended: start_ns, unless the scope cut the gap"
next_ns = "When the operation after it started: end_ns, unless the scope cut the gap"
idle_ns = "Total time of all gaps, including those not listed"
*/
FROM facts.listed_gaps;
