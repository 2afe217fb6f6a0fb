CREATE VIEW fusion_step AS
FROM facts.fusion_step;

COMMENT ON VIEW fusion_step IS
    'One row: the typical step in which `fusion_candidates` were found. No row where no steps were found, or their '
    'kernels are not in the trace.';
COMMENT ON COLUMN fusion_step.wall_ns IS 'How long it lasts';
COMMENT ON COLUMN fusion_step.replayed_ns IS
    'Step time when it is replayed unchanged: how well savings can be estimated';
COMMENT ON COLUMN fusion_step.together_low_ns IS 'What all chosen candidates together save at least';
COMMENT ON COLUMN fusion_step.together_high_ns IS 'What they save at most';
COMMENT ON COLUMN fusion_step.fixed_ns IS 'The fixed cost of a kernel: the time of the shortest ones';
COMMENT ON COLUMN fusion_step.layer_period IS
    'Operations of a layer on the stream with the most operations; NULL where no layers repeat';
COMMENT ON COLUMN fusion_step.layers IS 'Number of consecutive layers';
COMMENT ON COLUMN fusion_step.typical_steps IS 'Steps with the typical sequence of operations';
COMMENT ON COLUMN fusion_step.sampled_steps IS 'Steps that were examined';
COMMENT ON COLUMN fusion_step.kernels IS 'Kernels of the typical step';
COMMENT ON COLUMN fusion_step.process_id IS 'Operating system''s process id';
