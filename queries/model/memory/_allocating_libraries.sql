/*
description = """One row: which libraries may be what allocates in each step, of a program without an allocator of its
    own. A handle of cuBLAS, also that within one of cuSOLVER, makes 18 events for its streams."""
[columns]
handle_events = "Events made per step, where kernels of such a library run and they suffice for a handle, else NULL"
has_thrust = "Kernels of Thrust or CUB run"
*/
SELECT
    any_value(if(c.events >= 16, c.events, NULL)) FILTER (n.provenance IN ('cuBLAS', 'cuSOLVER', 'CUTLASS'))
        AS handle_events,
    coalesce(bool_or(n.provenance = 'CUB/Thrust'), false) AS has_thrust
FROM kernel_names AS n, (
    SELECT sum(calls) AS events FROM step_operations
    WHERE kind = 'call' AND regexp_matches(name, '^cu(da)?EventCreate')
) AS c
WHERE NOT EXISTS (FROM frameworks WHERE framework IN ('pytorch', 'inductor', 'jax', 'cupy') AND is_program);
