/*
code = "NSI520"
title = "The GPU waits for messages from other ranks"
family = "pipeline"
explains = ["communication"]
meaning = """
A stage of a pipeline has nothing to do until a microbatch reaches it. With few microbatches, each stage waits while the
others work. Such waits look like communication, but a faster link would not help."""
evidence = [
    "for {exposed_ns} of {wall_ns} {per} the GPU runs only {messages:kernel} that send or receive",
    "they run for {message_ns} on average, the longest for {longest_ns}",
]
skip_if = "The ranks are no stages: neighbors exchange boundaries or blocks, which other work can hide."
effort = "line"
numerics = "rounding"
estimate = """
High: three quarters of the time in which these kernels run alone, as four times as many microbatches leave about a
quarter of it. Low: a tenth: smaller microbatches use the GPU less, and the host has more to launch."""
links = ["PyTorch documentation, Pipeline Parallelism"]
report = "collectives"
when = """
SELECT 1 FROM kernel_names
WHERE provenance = 'NCCL' AND regexp_matches(name, 'SendRecv|ncclDevKernel_(Send|Recv)') LIMIT 1"""

[fix]
any = """
Use more microbatches a step, or several smaller stages on each rank (interleaved), and give the stages equal work.
Between neighbors that exchange blocks: send a block while another one is computed."""
pytorch = """
Use more microbatches a step (n_microbatches of the schedule) or a schedule with less waiting (Schedule1F1B,
ScheduleInterleaved1F1B of torch.distributed.pipelining), and give the stages equal work."""

[params]
min_pct = [10.0, "Smallest share of a step in which only messages run (a choice)"]
many_messages = [16,
    "With this number of messages per step, the batch is divided already (8 microbatches, forward and backward)"]
min_divided_pct = [25.0,
    "Smallest share of a step in which only messages run, if the batch is divided already (a choice)"]
*/
WITH messages AS (
    SELECT
        count(*)::DOUBLE AS messages, avg(end_ns - start_ns) AS message_ns, max(end_ns - start_ns) AS longest_ns,
        sum(exposed_ns)::DOUBLE AS exposed_ns
    FROM _exposed_collectives
    WHERE operation IN ('SendRecv', 'Send', 'Recv')
)
SELECT
    0.75 * m.exposed_ns / t.units AS recoverable_ns,
    0.1 * m.exposed_ns / t.units AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    m.exposed_ns / t.units AS exposed_ns, m.messages / t.units AS messages, m.message_ns, m.longest_ns, t.wall_ns
FROM messages AS m, _step_totals AS t
WHERE t.has_steps
    AND m.exposed_ns >= CASE WHEN m.messages >= $many_messages * t.units THEN $min_divided_pct ELSE $min_pct END
        / 100 * t.wall_ns * t.units
