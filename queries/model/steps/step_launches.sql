CREATE VIEW step_launches AS
FROM facts.step_launches;

COMMENT ON VIEW step_launches IS
    'TKLQT, the total launch and queuing time of the kernels of each steady step (Vellaisamy et al., arXiv '
    '2504.11750): from the start of each launch call to the start of its kernel on the GPU. For the whole scope '
    'where no steps were found. A graph counts once, to its first kernel; kernels without a launch call do not '
    'count.';
COMMENT ON COLUMN step_launches.step IS 'Number of the step; NULL for the whole scope';
COMMENT ON COLUMN step_launches.launch_calls IS
    'Launch calls whose kernel or graph is in the trace, including graph launches';
COMMENT ON COLUMN step_launches.graph_launches IS 'Launches of CUDA graphs';
COMMENT ON COLUMN step_launches.launch_queue_ns IS
    'Sum of the times from the start of the call to the start on the GPU: TKLQT';
COMMENT ON COLUMN step_launches.queue_ns IS 'Part of launch_queue_ns after the call had returned';
