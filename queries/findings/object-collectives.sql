/*
code = "NSI521"
title = "Python objects are exchanged through the GPU"
family = "object-collectives"
explains = [
    "late-host", "start", "wait", "copy", "communication", "graph-break", "scalar-read-backs", "alternating",
    "small-copies",
]
blocks = ["late-host"]
meaning = """
An object is pickled, copied to the GPU, exchanged in two collectives (its length, then its bytes), and copied back
with a wait for each part. The GPU has next to nothing to do meanwhile."""
evidence = [
    "{reads:copy|copies} of {read_bytes} on average to the host {per}, each after a collective of a few microseconds",
    "their lengths are no multiples of 4: pickled objects have such lengths, arrays of 4- or 8-byte numbers do not",
    "from the first of the two collectives to the last copy, {span_ns} {per}",
    "the GPU is idle for {idle_ns} of {wall_ns}",
]
skip_if = "The bytes are data of the program, such as a mask, an image or 16-bit numbers."
effort = "function"
estimate = """
High: the time from the collective for the lengths to the last copy, at most the idle time of the step. Low: 40% of
it."""
links = ["PyTorch documentation, torch.distributed: all_gather_object"]
report = "syncs"
when = """
SELECT 1 FROM kernel_names AS n
WHERE n.provenance = 'NCCL' AND EXISTS (
    FROM waits WHERE copy_kind = 'D2H' AND copy_bytes % 4 <> 0 AND copy_bytes BETWEEN $min_bytes AND $max_bytes
) LIMIT 1"""

[fix]
any = """
Exchange numbers as one array with the collective for arrays, every N steps; exchange objects between the hosts, such
as by MPI."""
pytorch = """
Exchange numbers in one tensor (all_gather_into_tensor, all_reduce) and read it every N steps, instead of
all_gather_object, gather_object or broadcast_object_list; give objects a group of their own with the backend gloo."""

[params]
min_bytes = [16, "Smallest pickled object (16 bytes: a number takes 5 to 12)"]
max_bytes = [65536, "Largest copy that counts (64 KiB: larger ones are data)"]
max_run_ns = [100000, "Longest median of these collectives (100 µs: they wait for other ranks in some steps)"]
*/
WITH reads AS (
    SELECT w.process_id, w.copy_bytes, w.end_ns, w.copy_end_ns, s.step
    FROM (
        FROM waits WHERE copy_kind = 'D2H' AND copy_bytes % 4 <> 0 AND copy_bytes BETWEEN $min_bytes AND $max_bytes
    ) AS w
    ASOF JOIN _steady_windows AS s ON s.process_id = w.process_id AND s.host_start_ns <= w.start_ns
    WHERE w.start_ns < s.host_end_ns
),
-- Each collective, and when the one before it began: that for the lengths.
collectives AS (
    SELECT
        k.process_id, k.start_ns, k.end_ns - k.start_ns AS run_ns,
        lag(k.start_ns) OVER (PARTITION BY k.process_id ORDER BY k.start_ns) AS lengths_ns
    FROM kernel_events AS k JOIN kernel_names AS n USING (name_id)
    WHERE n.provenance = 'NCCL'
),
-- The bytes of one collective are read in one copy per rank.
exchanges AS (
    SELECT
        r.step, c.start_ns, count(*) AS reads, sum(r.copy_bytes) AS bytes, any_value(c.run_ns) AS run_ns,
        max(r.end_ns) - any_value(c.lengths_ns) AS span_ns
    FROM reads AS r ASOF JOIN collectives AS c ON c.process_id = r.process_id AND c.start_ns <= r.copy_end_ns
    GROUP BY ALL
),
totals AS (
    SELECT
        sum(reads)::DOUBLE AS reads, sum(bytes) / sum(reads) AS read_bytes, count(DISTINCT step) AS steps,
        sum(span_ns)::DOUBLE AS span_ns, median(run_ns) AS run_ns
    FROM exchanges
)
SELECT
    least(e.span_ns / t.units, t.idle_ns) AS recoverable_ns, 0.4 * recoverable_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place, e.reads / t.units AS reads, e.read_bytes, e.span_ns / t.units AS span_ns, t.idle_ns, t.wall_ns
FROM totals AS e, _step_totals AS t
WHERE t.has_steps AND e.steps >= 0.5 * (SELECT count(*) FROM _steady_windows) AND e.run_ns <= $max_run_ns
