-- What the texts and times of findings depend on. One row.
SELECT
    (SELECT framework FROM frameworks WHERE is_program) AS framework,
    coalesce(bool_or(steady_count > 0), false) AS has_steps,
    coalesce(any_value(tokens_per_step), 1)::DOUBLE AS tokens_per_step,
    coalesce(any_value(unit), 'step') AS step_unit
FROM step_method
