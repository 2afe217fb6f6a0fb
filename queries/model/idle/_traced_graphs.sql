CREATE VIEW _traced_graphs AS
FROM facts.traced_graphs;

COMMENT ON VIEW _traced_graphs IS
    'The gaps that a CUDA graph ended which was traced by its nodes, and what that cost its launch call at most.';
COMMENT ON COLUMN _traced_graphs.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _traced_graphs.gap_start_ns IS 'When the gap began, in the scope';
COMMENT ON COLUMN _traced_graphs.gap_end_ns IS 'When it ended, in the scope';
COMMENT ON COLUMN _traced_graphs.most_ns IS 'Half a microsecond for each kernel of the graph';
