/*
code = "NSI504"
title = "The GPU of a rank works longer, and the others wait for it"
family = "ranks"
is_cross_rank = true
overlaps = true
meaning = """
The same step keeps one GPU busy longer, so its rank joins the collectives last. Until then the kernels of the other
ranks spin."""
evidence = [
    [
        "rank {late_rank} is late in {late_steps} of {steps} {units} {step_numbers} by {late_ns} on average",
        "rank {late_rank} is late in {late_steps} of {steps} {units} by {late_ns} on average",
    ],
    "in {minor_steps} more by {minor_ns} on average",
    [
        "{?is_compared_with_itself}in these {units} its GPU is busy {busy_ratio} times as long as usual",
        "in these {units} its GPU is busy {busy_ratio} times as long as the others",
        "in these {units} its GPU is busy {more_busy_ns} longer on average",
    ],
    "in AlltoAll it sends {sent_ratio} times as many bytes as the others: it has more of the tokens",
    [
        "{?is_compared_with_itself}the others wait {others_wait_ns} per {unit} more than usual, on average",
        "the others wait {others_wait_ns} per {unit} on average",
    ],
]
skip_if = "The work has to be on one rank, as the loss is on the last stage of a pipeline."
effort = "function"
estimate = """
High: how late the latest rank is in each step: how much longer the others wait than it does. Low: what is left of that
if its additional work is divided among all ranks; the same for both if an exchange shows that its work is more. At
most, for low, what the step is longer than the host of another rank works."""
links = ["NCCL documentation, Collective Operations"]
report = "ranks"

[fix.work]
any = """
Compare its kernels with those of another rank: nsys-insight top of both. More or larger kernels: distribute the work
evenly (lengths of sequences, layers, experts, parts of a grid). The same kernels, only slower: check clock rate,
power and temperature of that GPU with nvidia-smi -q -d CLOCK,PERFORMANCE."""
pytorch = """
Compare its kernels with those of another rank: nsys-insight top of both. More or larger kernels: give each rank as
many tokens (a batch sampler that groups by length), layers or experts. The same kernels, only slower: check clock
rate, power and temperature of that GPU with nvidia-smi -q -d CLOCK,PERFORMANCE."""
cuda = """
Compare its kernels with those of another rank: nsys-insight top of both. More or larger kernels: partition the domain
by the measured time of each part. The same kernels, only slower: check clock rate, power and temperature of that GPU
with nvidia-smi -q -d CLOCK,PERFORMANCE."""

[fix.experts]
any = """
Balance what the ranks exchange: a router that sends about as many tokens to each expert (auxiliary loss, a capacity
for each expert), or experts placed so that the popular ones are on different ranks, or replicated."""

[params]
min_sent_ratio = [1.15,
    "An exchange is uneven if the late rank sends this many times as many bytes as the others (a choice)"]
*/
WITH sent_sizes AS (
    SELECT o.rank, sum(o.bytes)::DOUBLE AS sent_bytes, l.rank = o.rank AS is_late
    FROM collectives AS c
    JOIN collective_ranks AS o USING (collective)
    CROSS JOIN (SELECT rank FROM _late_run) AS l
    WHERE c.operation = 'AlltoAll' AND c.step IS NOT NULL
    GROUP BY ALL
),
sent_ratios AS (
    SELECT
        max(sent_bytes) FILTER (is_late) / nullif(median(sent_bytes) FILTER (NOT is_late), 0) AS sent_ratio
    FROM sent_sizes
),
exchanges AS (
    SELECT count(*) FILTER (operation IN ('AlltoAll', 'Exchange')) > count(*) / 2 AS has_exchanges FROM collectives
),
late_ranks AS (
    SELECT count(*)::DOUBLE AS late_ranks, any_value(r.ranks) AS ranks FROM _lateness, rank_run AS r
)
SELECT
    CASE WHEN s.sent_ratio >= $min_sent_ratio THEN s.sent_ratio END AS sent_ratio,
    CASE WHEN has_exchanges THEN 'experts' ELSE 'work' END AS cure_case,
    late_ns / steps / $tokens * (1 - late_ranks / ranks) AS divided_ns,
    least(divided_ns, greatest(wall_ns / steps - others_host_ns, 0) / $tokens) AS saving_low_ns,
    CASE WHEN sent_ratio IS NULL THEN late_ns / steps / $tokens ELSE divided_ns END AS recoverable_ns,
    100 * recoverable_ns * $tokens / (wall_ns / steps) AS wall_pct,
    names AS place,
    rank::VARCHAR AS late_rank,
    main_steps AS late_steps,
    main_ns AS late_ns,
    minor_steps,
    minor_ns,
    step_numbers,
    steps,
    unit,
    unit || CASE WHEN steps > 1 THEN 's' ELSE '' END AS units,
    compared_with = 'itself' AS is_compared_with_itself,
    more_busy_ns,
    round(busy_ratio, 1) AS busy_ratio,
    waiting_ns AS others_wait_ns
FROM _late_run, sent_ratios AS s, exchanges, late_ranks AS n
WHERE cause = 'gpu'
