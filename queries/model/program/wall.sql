/*
description = """The wall time that shares refer to: from the first to the last CUDA event (API call or device
    activity), or the scope's own intervals: --from to --to, the ranges of --nvtx."""
[columns]
start_ns = "Start of the interval of wall time"
end_ns = "End of the interval of wall time"
duration_ns = "end_ns - start_ns"
*/
SELECT start_ns, end_ns, end_ns - start_ns AS duration_ns
FROM raw.wall
WHERE end_ns > start_ns;
