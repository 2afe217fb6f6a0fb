/*
topic = "steps"
progress = "the program's loops"
scratch = "steps"
*/
-- The loops of the busiest process. The views `loops`, `loop_iterations` and `loop_operations` document the columns.
CREATE TABLE IF NOT EXISTS facts.loops (
    loop VARCHAR, parent VARCHAR, depth BIGINT, iterations BIGINT, per_parent DOUBLE, period_ns DOUBLE,
    period_low_ns DOUBLE, period_high_ns DOUBLE, gpu_busy_ns DOUBLE, gpu_idle_ns DOUBLE, communication_ns DOUBLE,
    operations DOUBLE,
    launches DOUBLE, gpu_share DOUBLE, graph_share DOUBLE, regular_share DOUBLE, structure_share DOUBLE,
    start_ns BIGINT, end_ns BIGINT,
    process_id BIGINT, marks BIGINT, parent_weight DOUBLE
);

CREATE TABLE IF NOT EXISTS facts.loop_iterations (
    loop VARCHAR, run BIGINT, iteration BIGINT, host_start_ns BIGINT, host_end_ns BIGINT, start_ns BIGINT,
    end_ns BIGINT, done_ns BIGINT,
    operations BIGINT, gpu_ns BIGINT, is_different BOOLEAN
);

CREATE TABLE IF NOT EXISTS facts.loop_operations (
    loop VARCHAR, position BIGINT, inner_loop VARCHAR, repeats BIGINT, kind VARCHAR, name_id BIGINT, label VARCHAR,
    gap_ns BIGINT, duration_ns BIGINT, host_start_ns BIGINT, start_ns BIGINT
)

COMMENT ON VIEW loops IS
    'The loops of the busiest process, recovered from the order in which it launched its operations: one row per loop, '
    'inner loops below the loop around them. A period lasts from the first operation of an iteration to the first '
    'one of the next iteration, on the GPU. Loops whose iterations hold less than a thousandth of the GPU time are '
    'left out.';
COMMENT ON COLUMN loops.loop IS 'Number of the loop: 1, 2, … in order of time; 1.2 is the second loop inside loop 1';
COMMENT ON COLUMN loops.parent IS 'The loop around it; NULL for outermost loops';
COMMENT ON COLUMN loops.depth IS 'Number of loops around it';
COMMENT ON COLUMN loops.iterations IS 'Iterations in total';
COMMENT ON COLUMN loops.per_parent IS
    'Iterations in each iteration of the loop around it, median; NULL for outermost loops';
COMMENT ON COLUMN loops.period_ns IS 'Time from the start of an iteration to the start of the next one, median';
COMMENT ON COLUMN loops.period_low_ns IS 'The same, first quartile';
COMMENT ON COLUMN loops.period_high_ns IS 'The same, third quartile';
COMMENT ON COLUMN loops.gpu_busy_ns IS 'Time of an iteration in which any GPU was busy, median';
COMMENT ON COLUMN loops.gpu_idle_ns IS 'Time of an iteration in which no GPU was busy, median';
COMMENT ON COLUMN loops.communication_ns IS 'Time of an iteration in which only communication ran on the GPUs, median';
COMMENT ON COLUMN loops.operations IS 'Operations of an iteration: kernels, copies, memsets and graphs, median';
COMMENT ON COLUMN loops.launches IS 'Kernels and graphs launched in an iteration, median; a graph counts once';
COMMENT ON COLUMN loops.gpu_share IS 'Share of the GPU time of the process that its operations hold';
COMMENT ON COLUMN loops.graph_share IS 'Share of that time in CUDA graphs';
COMMENT ON COLUMN loops.regular_share IS
    'Share of the iterations whose number of operations is within a quarter of the median';
COMMENT ON COLUMN loops.structure_share IS
    'Share of the iterations with the same operations, where an inner loop counts as one at any number of iterations';
COMMENT ON COLUMN loops.start_ns IS 'When the first iteration starts on the host';
COMMENT ON COLUMN loops.end_ns IS 'When the operations of the last iteration end on the GPU';
COMMENT ON COLUMN loops.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN loops.marks IS
    'How many of these each iteration has: a result that is copied to the host, a token, loss or optimizer, an input '
    'that is copied to the GPU, a wait of the host';
COMMENT ON COLUMN loops.parent_weight IS
    'How many hints more say that the loop around it is the step; negative: that this loop is the step, which the rest '
    'of the loop around it interrupts. Of an outermost loop: the same for steps that end with each of its '
    'interruptions; NULL if it has none';

COMMENT ON VIEW loop_iterations IS 'The iterations of `loops`, one row each.';
COMMENT ON COLUMN loop_iterations.loop IS 'The loop, as in `loops`';
COMMENT ON COLUMN loop_iterations.run IS
    'Execution of the loop, from 0: an inner loop runs once in each iteration of its parent';
COMMENT ON COLUMN loop_iterations.iteration IS 'Number of the iteration in this run, from 0';
COMMENT ON COLUMN loop_iterations.host_start_ns IS 'When its first launch call starts on the host';
COMMENT ON COLUMN loop_iterations.host_end_ns IS
    'When the first launch call after it starts; the largest BIGINT if there is none';
COMMENT ON COLUMN loop_iterations.start_ns IS 'When its first operation starts on the GPU';
COMMENT ON COLUMN loop_iterations.end_ns IS
    'When the first operation of the next iteration starts; of the last one of a run, when its own operations end';
COMMENT ON COLUMN loop_iterations.done_ns IS 'When its operations end on the GPU';
COMMENT ON COLUMN loop_iterations.operations IS 'Operations that it launched: kernels, copies, memsets and graphs';
COMMENT ON COLUMN loop_iterations.gpu_ns IS 'Sum of their durations';
COMMENT ON COLUMN loop_iterations.is_different IS
    'Whether it launched other kernels, or other grids, than most iterations';

COMMENT ON VIEW loop_operations IS
    'A typical iteration of each of `loops`, in the order of its launch calls: one row per operation, per run of equal '
    'operations or per inner loop.';
COMMENT ON COLUMN loop_operations.loop IS 'The loop, as in `loops`';
COMMENT ON COLUMN loop_operations.position IS 'Position in the iteration, from 0';
COMMENT ON COLUMN loop_operations.inner_loop IS 'The inner loop that runs here; NULL for an operation';
COMMENT ON COLUMN loop_operations.repeats IS
    'How often the operation follows itself, or the iterations of the inner loop';
COMMENT ON COLUMN loop_operations.kind IS 'kernel, copy, memset, graph, wait or loop';
COMMENT ON COLUMN loop_operations.name_id IS 'A kernel''s name, in `kernel_names`; NULL for the others';
COMMENT ON COLUMN loop_operations.label IS 'The copy or the call that waits; NULL for kernels and loops';
COMMENT ON COLUMN loop_operations.gap_ns IS
    'Time in which no GPU was busy between the operations before it and its start';
COMMENT ON COLUMN loop_operations.duration_ns IS 'Sum of the durations on the GPU; of a wait, the duration of the call';
COMMENT ON COLUMN loop_operations.host_start_ns IS 'When its first call starts on the host';
COMMENT ON COLUMN loop_operations.start_ns IS
    'When its first operation starts on the GPU; of a wait, when the call starts';
