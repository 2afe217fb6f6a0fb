/*
code = "NSI211"
title = "Values are read back one by one"
family = "readback"
explains = [
    "d2h-sync", "cpu-work", "launch-bound", "graph-candidate", "many-launches", "stall-place",
    "pageable-copy",
]
meaning = """
Several values of a few bytes are copied to the host in each step, each with a wait of its own: the pattern of a loop
over tensors that reads one number of each."""
evidence = [
    "{reads:copy|copies} of at most {most_bytes} to the host {per}, each followed by a wait",
    "before most of them runs {kernel}",
    "the GPU is idle for {idle_ns} of {wall_ns}",
]
caveat = """
Each value decides what runs next."""
effort = "line"
estimate = """
High: the idle time of the GPU around the reads. Low: 40 % of it. A read's own wait for the GPU is not saved."""
links = ["PyTorch documentation, Performance Tuning Guide: avoid unnecessary CPU-GPU synchronization"]
report = "syncs"
when = """
SELECT 1 FROM waits WHERE copy_kind = 'D2H' AND copy_bytes BETWEEN 2 AND $most_bytes
HAVING count(*) >= $least_reads * (SELECT greatest(count(*), 1) FROM steps WHERE phase = 'steady')"""

[cure]
any = "Keep the values on the GPU, gather them into one array, and read it once, every N steps."
pytorch = """
Keep the values on the GPU: torch.nn.utils.clip_grad_norm_ for gradient clipping, torch.stack for several losses; read
them once (.tolist()), every N steps."""
jax = "Return the values from the jitted step as one array, and read it every N steps."
cupy = "Gather the values into one array on the GPU, and call .get() once, every N steps."
cuda = "Write the values into one buffer on the GPU, and copy it once, every N steps."

[params.least_reads]
default = 4
help = "Fewest reads in a step (4: fewer are covered by d2h-sync)"

[params.most_bytes]
default = 8
help = "Largest copy that counts as a value (8 bytes: a double)"
*/
WITH windows AS (
    SELECT process_id, host_start_ns, host_end_ns FROM steps WHERE phase = 'steady'
),
reads AS (
    SELECT count(*)::DOUBLE AS reads, max(w.copy_bytes) AS most_bytes
    FROM (FROM waits WHERE copy_kind = 'D2H' AND copy_bytes BETWEEN 2 AND $most_bytes) AS w
    ASOF JOIN windows AS s ON s.process_id = w.process_id AND s.host_start_ns <= w.start_ns
    WHERE w.start_ns < s.host_end_ns
),
-- The kernel that the loop over the values runs before each copy.
kernels_before AS (
    SELECT
        o.loop, o.label,
        lag(o.name_id) OVER (PARTITION BY o.loop ORDER BY o.position) AS name_id
    FROM loop_operations AS o
    WHERE o.kind <> 'wait'
),
kernel_before AS (
    SELECT kernel_base_name(mode(k.name)) AS kernel
    FROM kernels_before AS b JOIN kernel_names AS k USING (name_id)
    WHERE b.label = 'D2H copy'
)
SELECT
    t.idle_ns * least(1, 20 * r.reads / t.units / t.launch_calls) AS recoverable_ns,
    0.4 * recoverable_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    r.reads / t.units AS reads, r.most_bytes, b.kernel, t.idle_ns, t.wall_ns
FROM reads AS r, kernel_before AS b, _step_totals AS t
WHERE t.has_steps AND t.launch_calls > 0 AND r.reads >= $least_reads * t.units
