-- What the texts and times of findings depend on. One row.
SELECT
    (SELECT framework FROM frameworks WHERE is_program LIMIT 1) AS framework,
    EXISTS (FROM step_method WHERE steady_count > 0) AS has_steps,
    coalesce((SELECT tokens_per_step FROM step_method), 1)::DOUBLE AS tokens_per_step,
    coalesce((SELECT unit FROM step_method), 'step') AS step_unit,
    EXISTS (FROM _unrecorded WHERE what = 'kernels') AS lacks_kernels
