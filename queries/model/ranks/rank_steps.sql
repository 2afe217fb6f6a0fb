CREATE VIEW rank_steps AS
FROM facts.rank_steps;

COMMENT ON VIEW rank_steps IS
    'One row per step and rank of the largest communicator: where its time goes, from the end of the last '
    'collective before the step to the end of the step''s own last one, so that all ranks begin and end together. '
    'Where no steps were found, each collective is one.';
COMMENT ON COLUMN rank_steps.step IS 'Number of the step, or of the collective';
COMMENT ON COLUMN rank_steps.rank IS 'The rank';
COMMENT ON COLUMN rank_steps.start_ns IS 'When the last collective before it ended, on the clock of the first trace';
COMMENT ON COLUMN rank_steps.trace_start_ns IS 'The same in the time of the rank''s own trace';
COMMENT ON COLUMN rank_steps.wall_ns IS 'Step time; the parts add up to it';
COMMENT ON COLUMN rank_steps.busy_ns IS 'The GPU is busy with work other than communication';
COMMENT ON COLUMN rank_steps.waiting_ns IS 'The GPU only waits in collectives for ranks that have not arrived';
COMMENT ON COLUMN rank_steps.transfer_ns IS
    'The GPU only communicates: all ranks have arrived, or it is unknown which have';
COMMENT ON COLUMN rank_steps.idle_ns IS 'The GPU is idle';
COMMENT ON COLUMN rank_steps.late_ns IS
    'How late the rank is: how much longer the others wait than it does, where it makes them wait; else 0';
