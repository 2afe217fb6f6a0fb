/*
code = "NSI516"
title = "Parameters are sharded in units too small for the host"
family = "small-units"
explains = ["late-host", "start", "host-input", "host-stage"]
meaning = """
For each unit, the host gathers, copies, frees and reduces parameters in tens of calls. If a unit computes for less
than these take, the GPU waits for the host."""
evidence = [
    "{gathers:AllGather} and {scatters:ReduceScatter} a step",
    "from one AllGather to the next, the GPU computes for {compute_ns} and waits for {idle_ns}",
    "{launches:launch|launches} {per}",
]
skip_if = "The layers themselves launch many small kernels, which the host would launch as slowly without sharding."
effort = "line"
estimate = """
High: the idle time of the GPU in a step. Low: a third of it: what the units cost the host outside of their launches
is not in the trace."""
links = ["PyTorch documentation, fully_shard"]
report = "collectives"
when = "SELECT 1 FROM kernel_names WHERE provenance = 'NCCL' AND name LIKE '%AllGather%' LIMIT 1"

[fix]
any = "Shard in fewer, larger units: several layers together, or the parameters of small layers with their neighbors."
pytorch = """
Shard several layers together: fully_shard([layer1, layer2, ...]) (FSDP1: size_based_auto_wrap_policy with a larger
min_num_params); compile the model (torch.compile), so that the host has less to do for each; or replicate a model that
fits (DistributedDataParallel)."""

[params]
min_gathers = [8.0, "Fewest gathers in a step (a choice)"]
max_busy_pct = [60.0, "Largest share of GPU busy time: above it, the host is not what the GPU waits for (a choice)"]
max_launches = [60.0, "Most launches for each gather: with more, the layers themselves take the host's time (a choice)"]
*/
WITH totals AS (
    SELECT
        count(*) FILTER (operation = 'AllGather')::DOUBLE AS gathers,
        count(*) FILTER (operation = 'ReduceScatter')::DOUBLE AS scatters, sum(exposed_ns)::DOUBLE AS exposed_ns
    FROM _exposed_collectives
)
SELECT
    t.idle_ns AS recoverable_ns,
    recoverable_ns / 3 AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    c.gathers / t.units AS gathers, c.scatters / t.units AS scatters, t.launch_calls AS launches,
    (t.busy_ns - c.exposed_ns / t.units) * t.units / c.gathers AS compute_ns,
    t.idle_ns * t.units / c.gathers AS idle_ns
FROM totals AS c, _step_totals AS t
WHERE t.has_steps AND c.gathers >= $min_gathers * t.units AND c.scatters > 0
    AND t.busy_ns < $max_busy_pct / 100 * t.wall_ns
    AND t.launch_calls * t.units / c.gathers <= $max_launches
