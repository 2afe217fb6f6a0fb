CREATE VIEW rank_steps AS
FROM facts.rank_steps;

COMMENT ON VIEW rank_steps IS 'One row per step and rank of the largest communicator: what its time goes to, from the end of the last collective before the step to the end of the step''s own last one, so that all ranks begin and end together. Where no steps are known, each collective is one.';
COMMENT ON COLUMN rank_steps.step IS 'Number of the step, or of the collective';
COMMENT ON COLUMN rank_steps.rank IS 'The rank';
COMMENT ON COLUMN rank_steps.start_ns IS 'When the last collective before it ended, on the clock of the first trace';
COMMENT ON COLUMN rank_steps.trace_start_ns IS 'The same in the time of the rank''s own trace';
COMMENT ON COLUMN rank_steps.wall_ns IS 'How long it lasts; the parts add up to it';
COMMENT ON COLUMN rank_steps.busy_ns IS 'The GPU does something else than communicate';
COMMENT ON COLUMN rank_steps.waiting_ns IS 'It does nothing but wait in collectives for ranks that have not come';
COMMENT ON COLUMN rank_steps.transfer_ns IS 'It does nothing but communicate: all ranks are there, or it is not known who is';
COMMENT ON COLUMN rank_steps.idle_ns IS 'It does nothing';
COMMENT ON COLUMN rank_steps.late_ns IS 'By how much the rank is late: what others wait more than it, where it makes them wait; else 0';
