/*
description = """The operations of `_gpu_work`, each with the latest end of those before it: busy time and gaps follow
    from this in one pass."""
stored = true
progress = "GPU activity"
[columns]
start_ns = "When the operation started on the GPU"
end_ns = "When the operation ended; never before start_ns"
running_end_ns = "The latest end of the operations that started before it; NULL for the first"
call = "Launch call: the correlation id times 16,777,216, plus the process id; NULL where the trace lacks the id"
is_same_call = "Whether the operation before it on the GPU is of the same launch call, as in a CUDA graph"
*/
-- Operations overlap. So at the start of an operation, the latest end so far matters, not the end of the one before it.
-- The times of all GPUs are concatenated to one timeline. Sorting by one number takes half the memory and two thirds of
-- the time of a window per GPU. Windows over sorted rows need no ORDER BY, and keep no rows.
-- A call is one number too: there is one call per correlation id (see nsys_insight/ingest/raw.py).
WITH reach AS (
    SELECT
        line_start, line_end, call, lag(line_reached) OVER () AS line_reached, lag(call) OVER () = call AS is_same_call
    FROM (
        SELECT *, max(line_end) OVER (ROWS UNBOUNDED PRECEDING) AS line_reached
        FROM (
            SELECT
                on_line(gpu_id, start_ns) AS line_start, on_line(gpu_id, end_ns) AS line_end,
                call_of(correlation_id, process_id) AS call
            FROM _gpu_work
            ORDER BY line_start, call
        )
    )
)
SELECT
    gpu_on_line(line_start)::INTEGER AS gpu_id,
    ns_on_line(line_start) AS start_ns,
    ns_on_line(line_end) AS end_ns,
    CASE
        WHEN line_start >> lane_bits() = line_reached >> lane_bits() THEN ns_on_line(line_reached)
    END AS running_end_ns,
    call,
    is_same_call
FROM reach;
