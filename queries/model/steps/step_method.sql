CREATE VIEW step_method AS
FROM facts.step_method;

COMMENT ON VIEW step_method IS 'One row: how the rows of `steps` were found. No row when nothing ran on a GPU.';
COMMENT ON COLUMN step_method.method IS 'nvtx, graph, sequence, or count; NULL when no steps were found';
COMMENT ON COLUMN step_method.pattern IS
    'The NVTX ranges'' name, with # for numbers; or which operation begins or ends a step';
COMMENT ON COLUMN step_method.confidence IS 'high, medium or low';
COMMENT ON COLUMN step_method.reason IS 'Why';
COMMENT ON COLUMN step_method.process_id IS
    'The process whose steps they are: the one whose stream is busy for longest';
COMMENT ON COLUMN step_method.step_count IS 'Steps found';
COMMENT ON COLUMN step_method.steady_count IS 'Steps of the steady state';
COMMENT ON COLUMN step_method.outlier_count IS 'Steady steps that are outliers';
COMMENT ON COLUMN step_method.warm_up_count IS 'Steps left out at the start';
COMMENT ON COLUMN step_method.tail_count IS 'Steps left out at the end';
COMMENT ON COLUMN step_method.prefill_count IS 'Prefills: work like a step, but with different operations and longer';
COMMENT ON COLUMN step_method.tokens_per_step IS 'Tokens that a step makes';
COMMENT ON COLUMN step_method.loop IS
    'The loop of `loops` whose iterations the steps are; NULL where they are NVTX ranges or a count';
COMMENT ON COLUMN step_method.unit IS
    'What a step is called: step; or iteration, layer, call of attention where it is probably a part of a step';
COMMENT ON COLUMN step_method.doubt IS 'Which other level may be the step, and why; NULL if the level is clear';
