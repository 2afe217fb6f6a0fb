/*
code = "NSI103"
title = "The step could be launched as a CUDA graph"
family = "launch"
symptom = "late-host"
overlaps = true
meaning = "One graph launch would replace one launch call per kernel."
evidence = [
    [
        "{?has_low_bound}a CUDA graph saves {saving_low_ns} to {saving_high_ns} {per} under nsys",
        "a CUDA graph saves up to {saving_high_ns} {per} under nsys",
    ],
    "remove first: {blockers}",
]
skip_if = "Shapes or control flow change from step to step, or the host has to read values inside the step."
effort = "function"
estimate = """
The time in which the GPU waits for launches, minus what remains with a graph: the launch of the graph, and 0.3 to 1 µs
from kernel to kernel."""
links = ["CUDA C++ Programming Guide, CUDA Graphs", "PyTorch documentation, CUDA semantics: CUDA Graphs"]
example = "sample_traces/decode_eager.sqlite"
report = "graph-candidates"

[fix]
any = "Capture the step as a CUDA graph."
pytorch = """
Compile the step with torch.compile(mode="reduce-overhead"), or capture it with torch.cuda.graph or
torch.cuda.make_graphed_callables."""
inductor = """
Compile with mode="reduce-overhead", or capture the step with torch.cuda.graph."""
jax = "Put the whole step under one jax.jit; XLA can then launch it as command buffers (CUDA graphs)."
cupy = "Capture the step on a stream: stream.begin_capture(), stream.end_capture(), graph.launch()."
cuda = "Capture the step with cudaStreamBeginCapture, instantiate it once, and launch it with cudaGraphLaunch."
kokkos = "Record the step with Kokkos::Experimental::create_graph."
sycl = "Record the step in a command graph (sycl_ext_oneapi_graph)."
julia = "Capture the step with CUDA.@captured."
tensorrt = "Capture enqueueV3 as a CUDA graph."
*/
SELECT
    saving_high_ns AS recoverable_ns,
    saving_high_pct AS wall_pct,
    NULL AS place,
    saving_low_ns,
    saving_high_ns,
    saving_low_ns > 0 AS has_low_bound,
    obstacles AS blockers
FROM graph_candidates_report
-- If CPU work takes most of the time, fewer launches would not help.
WHERE verdict <> 'no' AND EXISTS (FROM classify_report WHERE part = 'launch' AND see = 'graph-candidates')
