/*
code = "NSI101"
title = "Kernel launch overhead"
family = "launch"
symptom = "late-host"
shortens_kernels = true
meaning = "The host launches kernels more slowly than the GPU runs them, so the GPU is idle in between."
evidence = [
    "the GPU is idle for {idle_ns}: {idle_parts}",
    "{launch_calls:launch call} {per} at {launch_call_ns} each",
    "kernels average {kernel_ns}",
    "{same_launches} of the launches are of {same_kernel}",
    "{graph_launches:launch of a CUDA graph|launches of CUDA graphs} {per}",
]
skip_if = "The CPU keeps ahead of the GPU without the profiler."
effort = "function"
estimate = """
High: the idle time in front of the launches that a CUDA graph would replace. Low: what a CUDA graph saves at least. Of
both, what is left without nsys."""
links = ["CUDA C++ Programming Guide, CUDA Graphs", "PyTorch documentation, torch.compile: mode"]
example = "sample_traces/decode_eager.sqlite"
report = "classify"
when = "SELECT 1 FROM classify_report WHERE part = 'launch' AND see = 'graph-candidates'"

[fix.without_graphs]
any = "Launch the step as a CUDA graph, or launch fewer kernels: fuse them, batch the work."
pytorch = """
Compile the step: torch.compile(model, mode="reduce-overhead") fuses kernels and launches a CUDA graph; or capture it
with torch.cuda.graph."""
inductor = """
Launch the compiled step as a CUDA graph: mode="reduce-overhead", or capture it with torch.cuda.graph."""
jax = """
Put the whole step under one jax.jit; within it, replace loops of small iterations by jax.vmap, or for a linear
recurrence by jax.lax.associative_scan."""
cupy = """
Fuse the operations: cupy.fuse, ElementwiseKernel or RawKernel; or capture the step on a stream as a graph:
stream.begin_capture()."""
cuda = "Capture the step as a CUDA graph (cudaStreamBeginCapture, cudaGraphLaunch), or fuse kernels."
openacc = "Launch asynchronously (async clauses, one wait at the end), and merge small parallel regions."
openmp = "Launch asynchronously (target nowait), and merge small target regions."
kokkos = "Merge small parallel_for regions, or use Kokkos::Experimental::Graph."
sycl = "Merge small kernels, or record the step in a command graph (sycl_ext_oneapi_graph)."
julia = "Fuse broadcasts into one kernel, or capture the step with CUDA.@captured."
tensorrt = "Capture enqueueV3 as a CUDA graph."

[fix.one_kernel]
any = """
Launch {same_kernel} once for all of its inputs, with one more dimension of the grid, if they do not depend on each
other. Else launch the step as a CUDA graph."""
cuda = """
Launch {same_kernel} once for all of its inputs, with one more dimension of the grid and an array of their addresses, if
they do not depend on each other. Else capture the step as a CUDA graph (cudaStreamBeginCapture, cudaGraphLaunch)."""

[fix.with_graphs]
any = "Put what the step launches outside its CUDA graphs into them, or launch less of it."
pytorch = """
The step launches a graph already: compile or capture the rest with it, such as the loss and the conversion of results;
inputs that keep their addresses are not copied first."""
inductor = """
The step launches a graph already: compile the rest with it, such as the loss and the conversion of results; inputs that
keep their addresses (torch._dynamo.mark_static_address) are not copied first."""
jax = """
Put the whole step under one jax.jit; within it, replace loops of small iterations by jax.vmap, or for a linear
recurrence by jax.lax.associative_scan."""

[params]
min_same = [16, "Launches of one kernel in a step from which they are named (16: as in repeated-sequence)"]
min_same_share = [0.5, "Share of all launches from which they are named (0.5: most of what the host does)"]
*/
SELECT
    l.recoverable_ns,
    -- Without nsys, less is left of it (nsys_insight/diagnose/unprofiled.py).
    CASE
        WHEN EXISTS (FROM unprofiled_step WHERE source IS NOT NULL)
            THEN (SELECT least(saving_low_ns, l.recoverable_ns) FROM graph_candidates_report)
    END AS saving_low_ns,
    100 * l.recoverable_ns / w.time_ns AS wall_pct,
    (SELECT place FROM _slowest_phase) AS place,
    CASE WHEN g.has_graphs THEN 'with_graphs' WHEN o.calls > 0 THEN 'one_kernel' ELSE 'without_graphs' END AS cure_case,
    o.kernel AS same_kernel, round(o.calls)::BIGINT AS same_launches,
    CASE WHEN g.graph_launches >= 1 THEN g.graph_launches END AS graph_launches,
    l.time_ns AS idle_ns,
    coalesce(l.evidence, 'launch calls') AS idle_parts,
    g.launch_calls,
    g.launch_call_ns,
    k.kernel_ns
FROM (FROM classify_report WHERE part = 'launch') AS l
CROSS JOIN (FROM classify_report WHERE part = 'wall') AS w
LEFT JOIN (
    SELECT
        c.single_launches / m.tokens_per_step AS launch_calls, c.launch_call_ns,
        c.graph_launches / m.tokens_per_step AS graph_launches, c.graph_launches >= 1 AS has_graphs
    FROM graph_candidates_report AS c, step_method AS m WHERE c.single_launches > 0
) AS g ON true
LEFT JOIN (
    SELECT avg(kernel_ns / kernels) AS kernel_ns FROM steps WHERE phase = 'steady' AND kernels > 0
) AS k ON true
-- The kernel of the program that has most launches, in all of its shapes.
LEFT JOIN (
    SELECT kernel_base_name(s.name) AS kernel, sum(s.calls) / t.units AS calls
    FROM _step_totals AS t, _steady_shapes AS s
    JOIN kernel_names AS n USING (name)
    WHERE n.provenance IN ('hand-written', 'Numba') AND t.has_steps
    GROUP BY s.name, t.units
    ORDER BY calls DESC, kernel LIMIT 1
) AS o ON o.calls >= greatest($min_same, $min_same_share * g.launch_calls) AND NOT g.has_graphs
-- cpu-work covers host-bound runs; many-launches covers runs in which a graph saves little, or no steps repeat.
WHERE l.see = 'graph-candidates' AND EXISTS (FROM graph_candidates_report WHERE verdict <> 'no')
