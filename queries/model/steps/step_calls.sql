CREATE VIEW step_calls AS
FROM facts.step_calls;

COMMENT ON VIEW step_calls IS
    'How many CUDA API calls each thread made in each step, and how long they took, by what they are for, without '
    'calls inside others. A call belongs to the step in which it began on the host. For the whole scope where no '
    'step is steady.';
COMMENT ON COLUMN step_calls.step IS 'The step, as in `steps`; NULL for the whole scope';
COMMENT ON COLUMN step_calls.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN step_calls.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN step_calls.call_group IS
    'launch, graph launch, sync, copy, memset, alloc, free, graph, event, module or other, as in `api_calls`';
COMMENT ON COLUMN step_calls.calls IS 'Calls';
COMMENT ON COLUMN step_calls.time_ns IS 'Sum of their durations';
