CREATE VIEW step_budget AS
FROM facts.step_budget;

COMMENT ON VIEW step_budget IS
    'Where the wall time of each steady step goes, on each GPU, by what would save it; of the whole scope where no '
    'steps were found. The parts add up to the wall time. Idle time is that of `gpu_idle`; a wait gets, in addition '
    'to its own time, the starved time after it, up to the time that the wait blocked the host.';
COMMENT ON COLUMN step_budget.step IS 'Number of the step; NULL for the whole scope';
COMMENT ON COLUMN step_budget.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN step_budget.part IS
    'gpu: busy with kernels, memsets, whole graphs or copies in its own memory; communication: busy only with '
    'communication kernels; copy: busy only with copies, or idle for a blocking copy to the GPU; launch: idle, the '
    'host launched late; sync: idle, the host had waited for the GPU; allocation, dependency, profiler, edge, '
    'unknown: idle, as in `gpu_idle`';
COMMENT ON COLUMN step_budget.host IS
    'What the host did, as in `gpu_idle`; for sync, D2H copy where it waited for data, else wait; NULL for busy time';
COMMENT ON COLUMN step_budget.time_ns IS 'How long';
