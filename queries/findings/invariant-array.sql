/*
code = "NSI426"
title = "A large array that may stay the same is computed again in each iteration"
family = "recomputation"
explains = ["fusion", "kernel-time"]
meaning = """
Work in a loop that does not depend on what the loop changes can be done once before it. Here no kernel of an iteration
writes an array from which these could compute a new result, except themselves."""
evidence = [
    """{operations:operation} on one large array each ({kernels}) run in each of {repeats:iteration} {per}: {chain_ns}
    {per}""",
    "what else runs in an iteration sums up rows, or takes too little time to write such an array",
]
skip_if = """
The array or a factor differs from one iteration to the next: the loop goes over several arrays, the operations work in
place, or a number such as a temperature changes."""
effort = "line"
numerics = "same"
estimate = """
High: the time of these operations in all iterations but one. Low: 80% of it, as what reads the result may find it in
the L2 cache now. At most what the host leaves: with its time in the trace (low), and with half of it (high)."""
links = ["CUDA C++ Best Practices Guide, Application Profiling"]
report = "loops"
when = """
SELECT 1 FROM _steady_shapes AS s, _step_totals AS t
WHERE s.avg_ns >= $long_ns AND s.calls >= $min_repeats * t.units AND t.has_steps AND t.busy_ns > 0.5 * t.wall_ns
    AND reads_one_array(s.name)
HAVING sum(s.kernel_time_pct) >= $min_pct"""

[fix]
any = """
If the array does not change within the loop, nor the numbers that it is combined with, compute the result once before
the loop, and use it in each iteration."""

[params]
min_repeats = [8, "Fewest iterations in a step (8: fewer may be the layers of a model)"]
long_ns = [10000, "Shortest time of an operation on a large array (10 µs: it moves tens of megabytes on a large GPU)"]
min_pct = [5.0, "Share of the kernel time, and of the step, from which they are reported (5: half of a hot kernel)"]
max_other = [0.25, """Longest time of another operation, as a share of the shortest of these (0.25: writing an array
    takes half as long as reading and writing it)"""]
*/
WITH inner_loops AS (
    SELECT l.loop, l.iterations / m.step_count AS repeats
    FROM loops AS l
    JOIN step_method AS m ON m.process_id = l.process_id AND m.step_count > 0 AND m.loop IS DISTINCT FROM l.loop
    WHERE repeats >= $min_repeats
),
operations AS (
    SELECT
        o.loop, o.kind, o.repeats, o.duration_ns, o.duration_ns / o.repeats AS mean_ns, o.position, n.name,
        mean_ns >= $long_ns AND coalesce(reads_one_array(n.name), false) AS is_large,
        coalesce(regexp_matches(n.name, 'gemv|^void at::native::reduce_kernel<|DeviceReduce|^cupy_sum'), false)
            AS is_sum,
        coalesce(
            nullif(regexp_extract(n.name, '.*\b(\w+_kernel_cuda|\w+Functor\w*|\w+_kernel_impl|launch_\w+)\b', 1), ''),
            kernel_base_name(n.name)
        ) AS kernel
    FROM loop_operations AS o
    LEFT JOIN kernel_names AS n USING (name_id)
    WHERE o.loop IN (SELECT loop FROM inner_loops) AND o.kind <> 'wait'
),
chains AS (
    SELECT
        loop, sum(repeats) FILTER (is_large) AS operations, sum(duration_ns) FILTER (is_large) AS chain_ns,
        array_to_string(list(kernel ORDER BY position) FILTER (is_large)[:4], ', ') AS kernels
    FROM operations
    GROUP BY loop
    HAVING bool_and(kind IN ('kernel', 'copy')) AND bool_or(is_sum)
        AND coalesce(max(mean_ns) FILTER (NOT is_large AND NOT is_sum), 0)
            <= $max_other * min(mean_ns) FILTER (is_large)
)
SELECT
    least((l.repeats - 1) * c.chain_ns, limits.high_limit_ns) AS recoverable_ns,
    least(0.8 * (l.repeats - 1) * c.chain_ns, limits.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct, NULL AS place,
    CASE WHEN (l.repeats - 1) * c.chain_ns > limits.high_limit_ns THEN 'the host' END AS bounded_by,
    c.operations, c.kernels, l.repeats, l.repeats * c.chain_ns AS chain_ns
FROM chains AS c
JOIN inner_loops AS l USING (loop)
CROSS JOIN _step_totals AS t
CROSS JOIN _step_limits AS limits
WHERE wall_pct >= $min_pct
ORDER BY recoverable_ns DESC, c.loop
LIMIT 1
