/*
title = "One iteration of a loop, in order"
topic = "steps"
place = 12
question = "What does one iteration of a loop launch, in which order, and where does the GPU wait in it?"
examples = ["", "--loop 1.1"]
page = false
main = ["position", "repeats", "gap_ns", "duration_ns", "offset_ns", "name"]
description = """
A typical iteration of one of `loops`: of those with the most frequent sequence of operations, the one with the median
duration. Equal operations that follow each other are one row, and so is an inner loop. The order is that of the launch
calls on the host."""
reading = """
Rows with a gap_ns longer than their duration wait for the host or for another stream. An inner loop has its own
iteration: --loop with its number."""
empty = "There is no such loop: nsys-insight loops lists the loops"

[params.loop]
type = "text"
help = "The loop's number in loops, such as 1 or 1.2 (default: the outermost loop with the most GPU time)"

[columns]
position = "Position in the iteration, from 0"
repeats = "Number of times that the operation follows itself, or iterations of the inner loop"
gap_ns = "Time in which no GPU was busy between the operations before it and its start"
duration_ns = "Sum of the durations on the GPU; of a wait, the duration of the call"
offset_ns = "From the start of the iteration on the host to its launch call"
name = "The kernel, copy, memset or graph, or the call that waits; of an inner loop, its number"

[notes.which]
text = "loop {loop}: {iterations:iteration}, one every {period_ns}"
query = """
SELECT loop, iterations, period_ns
FROM loops WHERE loop = (
    SELECT coalesce($loop, arg_max(loop, gpu_share) FILTER (depth = 0)) FROM loops
)"""
*/
WITH chosen_loop AS (
    SELECT coalesce($loop, arg_max(loop, gpu_share) FILTER (depth = 0)) AS loop FROM loops
),
iteration_starts AS (
    SELECT loop, min(host_start_ns) AS start_ns FROM loop_operations GROUP BY loop
)
SELECT
    o.position,
    o.repeats,
    o.gap_ns,
    o.duration_ns,
    o.host_start_ns - s.start_ns AS offset_ns,
    coalesce('loop ' || o.inner_loop, k.name, o.label) AS name
FROM loop_operations AS o
JOIN chosen_loop AS c ON c.loop = o.loop
JOIN iteration_starts AS s ON s.loop = o.loop
LEFT JOIN kernel_names AS k ON k.name_id = o.name_id
ORDER BY o.position
