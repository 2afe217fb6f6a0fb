/*
description = """The gaps of `_held_gaps` and `_traced_graphs`, each once: `idle_charges` says what caused how much of
    their idle time."""
[columns]
gap_start_ns = "When the gap began, in the scope"
gap_end_ns = "When the gap ended, in the scope"
*/
SELECT gpu_id, gap_start_ns, gap_end_ns FROM _held_gaps
UNION
SELECT gpu_id, gap_start_ns, gap_end_ns FROM _traced_graphs;
