CREATE VIEW phase_idle AS
FROM facts.phase_idle;

COMMENT ON VIEW phase_idle IS
    'The idle time in each step of a phase by cause, a mean over the GPUs that the process used; the parts add up '
    'to `phase_steps.gpu_idle_ns`.';
COMMENT ON COLUMN phase_idle.phase_step IS 'The step, as in `phase_steps`';
COMMENT ON COLUMN phase_idle.cause IS 'As in `gpu_idle`';
COMMENT ON COLUMN phase_idle.idle_ns IS 'How long';
