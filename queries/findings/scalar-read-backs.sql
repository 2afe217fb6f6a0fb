/*
code = "NSI211"
title = "Values are read back one by one"
family = "readback"
explains = ["late-host", "start", "wait", "copy", "alternating"]
blocks = ["late-host"]
meaning = """
Several values of a few bytes are copied to the host in each step, each with a wait of its own: the pattern of a loop
over tensors that reads one number of each."""
evidence = [
    "{reads:copy|copies} of at most {most_bytes} to the host {per}, each followed by a wait",
    "most of them read what {kernel} computes",
    "the GPU is idle for {idle_ns} of {wall_ns} {per}, about {read_idle_ns} of it around these copies",
]
skip_if = "Each value decides what runs next."
effort = "line"
estimate = """
High: the idle time of the GPU in the loops over these copies, or its share that these copies and waits have among the
calls of a step. Low: 40% of it. The time in which the GPU computes the values is not saved."""
links = ["PyTorch documentation, Performance Tuning Guide: avoid unnecessary CPU-GPU synchronization"]
report = "syncs"
when = """
SELECT 1 FROM waits WHERE copy_kind = 'D2H' AND copy_bytes BETWEEN 2 AND $max_bytes
HAVING count(*) >= $min_reads * (SELECT count(*) FROM _steady_windows)"""

[fix]
any = "Keep the values on the GPU, gather them into one array, and read it once, every N steps."
pytorch = """
Keep the values on the GPU: torch.nn.utils.clip_grad_norm_ for gradient clipping, torch.stack for several losses; read
them once (.tolist()), every N steps."""
jax = "Return the values from the jitted step as one array, and read it every N steps."
cupy = "Gather the values into one array on the GPU, and call .get() once, every N steps."
cuda = "Write the values into one buffer on the GPU, and copy it once, every N steps."

[params]
min_reads = [4, "Fewest reads in a step (4: fewer are covered by d2h-sync)"]
max_bytes = [8, "Largest copy that counts as a value (8 bytes: a double)"]
max_call_ns = [100000, "Most idle time that one read costs (100 µs: more is other work of the host)"]
*/
WITH reads AS (
    SELECT count(*)::DOUBLE AS reads, max(w.copy_bytes) AS most_bytes
    FROM (FROM waits WHERE copy_kind = 'D2H' AND copy_bytes BETWEEN 2 AND $max_bytes) AS w
    ASOF JOIN _steady_windows AS s ON s.process_id = w.process_id AND s.host_start_ns <= w.start_ns
    WHERE w.start_ns < s.host_end_ns
),
-- The kernel that the loop over the values runs before each copy.
operations_before AS (
    SELECT
        o.loop, o.label, l.iterations * o.repeats AS runs,
        lag(o.name_id) OVER (PARTITION BY o.loop ORDER BY o.position) AS name_id
    FROM loop_operations AS o JOIN loops AS l USING (loop)
    WHERE o.kind <> 'wait'
),
kernels_before AS (
    SELECT kernel_base_name(k.name) AS kernel, sum(b.runs)::DOUBLE AS runs
    FROM operations_before AS b LEFT JOIN kernel_names AS k USING (name_id)
    WHERE b.label = 'D2H copy' GROUP BY ALL
),
kernel_before AS (
    SELECT CASE WHEN max(runs) FILTER (kernel IS NOT NULL) > sum(runs) / 2 THEN arg_max(kernel, runs) END AS kernel
    FROM kernels_before
),
-- Loops inside a step that read values back.
loop_idle AS (
    SELECT coalesce(sum(l.gpu_idle_ns * l.iterations) / any_value(m.step_count), 0) AS idle_ns
    FROM loops AS l CROSS JOIN step_method AS m
    WHERE l.depth > 0 AND l.loop IN (SELECT loop FROM loop_operations WHERE label = 'D2H copy')
)
SELECT
    least(
        t.idle_ns, $max_call_ns * r.reads / t.units,
        greatest(i.idle_ns, t.idle_ns * 2 * r.reads / (2 * r.reads + t.launch_calls * t.units))
    ) AS recoverable_ns,
    0.4 * recoverable_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    r.reads / t.units AS reads, r.most_bytes, b.kernel, t.idle_ns, t.wall_ns, recoverable_ns AS read_idle_ns
FROM reads AS r, kernel_before AS b, loop_idle AS i, _step_totals AS t
WHERE t.has_steps AND t.launch_calls > 0 AND r.reads >= $min_reads * t.units
