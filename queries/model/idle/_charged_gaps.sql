CREATE VIEW _charged_gaps AS
SELECT gpu_id, gap_start_ns, gap_end_ns FROM _held_gaps
UNION
SELECT gpu_id, gap_start_ns, gap_end_ns FROM _traced_graphs;

COMMENT ON VIEW _charged_gaps IS
    'The gaps of `_held_gaps` and `_traced_graphs`, each once: `idle_charges` says what caused how much of their '
    'idle time.';
COMMENT ON COLUMN _charged_gaps.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _charged_gaps.gap_start_ns IS 'When the gap began, in the scope';
COMMENT ON COLUMN _charged_gaps.gap_end_ns IS 'When it ended, in the scope';
