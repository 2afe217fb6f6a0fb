/*
code = "NSI118"
title = "CUDA graphs are built or updated again and again"
family = "graph-node-updates"
explains = ["late-host", "start"]
meaning = """
Before a graph is launched, it is instantiated, updated as a whole, or its nodes get new parameters, as if addresses,
sizes or operations changed each time. Each of these calls takes the host time, as a launch would."""
evidence = [
    "{builds:instantiation or update of a graph|instantiations and updates of graphs} {per}",
    "{updates:update} of single nodes {per}",
    """{graph_launches:graph launch|graph launches} {per}, and the host takes {update_ns} to capture, build, update or
    remove graphs [{names}]""",
]
skip_if = "The operations or sizes really change in each step."
effort = "function"
estimate = """
High: the time of the calls, where the GPU is idle for as long. Low: a quarter of
it, because nsys makes calls longer, and most of all those of a capture."""
links = ["CUDA C++ Programming Guide, Updating Instantiated Graphs"]
report = "steps"
when = """
SELECT 1 FROM _call_counts
WHERE regexp_matches(name, 'GraphExec.*SetParams|GraphKernelNodeSetParams|GraphExecUpdate|GraphInstantiate')"""

[fix]
any = """
Keep inputs and outputs at the same addresses in each step, and instantiate one graph for each shape before the loop."""
jax = "Donate buffers (donate_argnums), so that each step has the same addresses."
pytorch = "Copy new inputs into static buffers, as torch.cuda.graph and make_graphed_callables expect."
cuda = """
Keep buffers at the same addresses and launch the same graph again; instantiate one graph for each shape before the
loop."""

[params]
min_updates = [10, "Fewest updates of nodes for a graph launch (10: below, they cost less than the launch)"]
min_builds = [0.5,
    "Fewest instantiations and updates of whole graphs for a graph launch (0.5: every other launch needs one)"]
min_builds_without_steps = [4,
    "Fewest instantiations and updates of whole graphs where no steps were found (4: fewer may be the setup)"]
*/
WITH graph_calls AS (
    SELECT
        process_id, start_ns, name,
        -- What is called while a stream is captured builds the graph: launch calls launch nothing then.
        CASE
            WHEN name LIKE '%EndCapture' THEN end_ns - coalesce(max(start_ns) FILTER (name LIKE '%BeginCapture') OVER (
                PARTITION BY process_id, thread_id ORDER BY start_ns
            ), start_ns)
            WHEN name LIKE '%BeginCapture' THEN 0
            ELSE duration_ns
        END AS duration_ns,
        call_group = 'graph launch' AS is_launch,
        regexp_matches(name, 'NodeSetParams') AS is_update,
        regexp_matches(name, 'GraphExecUpdate|GraphInstantiate') AS is_build
    FROM api_calls
    WHERE call_group = 'graph launch'
        OR regexp_matches(name, 'Graph\w*NodeSetParams|GraphExecUpdate|GraphInstantiate')
        OR regexp_matches(name, 'Graph(Exec)?Destroy|Stream(Begin|End)Capture')
),
calls AS (
    SELECT
        count(*) FILTER (c.is_launch)::DOUBLE AS graph_launches,
        nullif(count(*) FILTER (c.is_update), 0)::DOUBLE AS updates,
        nullif(count(*) FILTER (c.is_build), 0)::DOUBLE AS builds,
        coalesce(sum(c.duration_ns) FILTER (NOT c.is_launch), 0)::DOUBLE AS update_ns,
        list(DISTINCT c.name ORDER BY c.name) FILTER (NOT c.is_launch) AS names
    FROM graph_calls AS c
    JOIN _steady_windows AS s
        ON coalesce(s.process_id = c.process_id, true) AND c.start_ns BETWEEN s.host_start_ns AND s.host_end_ns - 1
)
SELECT
    least(c.update_ns / t.units, t.idle_ns) AS recoverable_ns,
    0.25 * recoverable_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    c.updates / t.units AS updates, c.builds / t.units AS builds, c.graph_launches / t.units AS graph_launches,
    c.update_ns / t.units AS update_ns, c.names
FROM calls AS c, _step_totals AS t
WHERE c.graph_launches > 0 AND (t.has_steps OR c.builds >= $min_builds_without_steps)
    AND (c.updates >= $min_updates * c.graph_launches OR c.builds >= $min_builds * c.graph_launches)
