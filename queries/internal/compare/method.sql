-- How the steps of a run were found, and their number. No row if nothing ran on a GPU.
SELECT m.method, m.steady_count, m.tokens_per_step, m.doubt, s.is_count, s.range_name, s.step_loop, s.mark
FROM step_method AS m
CROSS JOIN _step_source AS s
