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
    [
        "{?is_compared_with_itself}the others wait {others_wait_ns} a {unit} more than usual, on average",
        "the others wait {others_wait_ns} a {unit} on average",
    ],
]
caveat = """
The work has to be on one rank, as the loss is on the last stage of a pipeline."""
effort = "function"
estimate = """
How late the latest rank is in each step: how much longer the others wait than it does. Work that moves to other ranks
takes part of it."""
links = ["NCCL documentation, Collective Operations"]
report = "ranks"

[cure]
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
*/
SELECT
    late_ns / steps / $tokens AS recoverable_ns,
    100 * late_ns / wall_ns AS wall_pct,
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
FROM _late_run
WHERE cause = 'gpu'
