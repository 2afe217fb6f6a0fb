/*
code = "NSI118"
title = "Nodes of a CUDA graph are updated before each launch"
family = "graph-node-updates"
explains = ["launch-bound", "many-launches", "slow-launches", "cpu-work"]
meaning = """
The parameters of single nodes are set again before a graph is launched: addresses or sizes change from step to step.
Each update is a call on the host, as a launch would be."""
evidence = [
    """{updates:update} of nodes for {graph_launches:graph launch|graph launches} {per}, which take the host
    {update_ns}""",
]
caveat = """
The sizes really change."""
effort = "function"
estimate = """
High: the time of the updates, where the GPU is idle for as long. Low: half of it."""
links = ["CUDA C++ Programming Guide, Updating Instantiated Graphs"]
report = "steps"
when = "SELECT 1 FROM _call_counts WHERE regexp_matches(name, 'GraphExec.*NodeSetParams')"

[cure]
any = "Keep inputs and outputs at the same addresses in each step, so that the graph needs no update."
jax = "Donate buffers (donate_argnums), so that each step has the same addresses."
pytorch = "Copy new inputs into static buffers, as torch.cuda.graph and make_graphed_callables expect."
cuda = "Keep buffers at the same addresses, or update the whole graph at once (cudaGraphExecUpdate)."

[params.least_updates]
default = 10
help = "Fewest updates for a graph launch (10: below, they cost less than the launch)"
*/
WITH windows AS (
    SELECT process_id, host_start_ns, host_end_ns FROM steps WHERE phase = 'steady'
),
calls AS (
    SELECT
        count(*) FILTER (c.call_group = 'graph launch')::DOUBLE AS graph_launches,
        count(*) FILTER (c.call_group <> 'graph launch')::DOUBLE AS updates,
        coalesce(sum(c.duration_ns) FILTER (c.call_group <> 'graph launch'), 0)::DOUBLE AS update_ns
    FROM (
        FROM api_calls WHERE call_group = 'graph launch' OR regexp_matches(name, 'GraphExec.*NodeSetParams')
    ) AS c
    ASOF JOIN windows AS s ON s.process_id = c.process_id AND s.host_start_ns <= c.start_ns
    WHERE c.start_ns < s.host_end_ns
)
SELECT
    least(c.update_ns / t.units, t.idle_ns) AS recoverable_ns,
    0.5 * recoverable_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    c.updates / t.units AS updates, c.graph_launches / t.units AS graph_launches, c.update_ns / t.units AS update_ns
FROM calls AS c, _step_totals AS t
WHERE t.has_steps AND c.graph_launches > 0 AND c.updates >= $least_updates * c.graph_launches
