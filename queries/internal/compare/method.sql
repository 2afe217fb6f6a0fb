-- How the steps of a run were found, and their number. No row if nothing ran on a GPU.
SELECT m.method, m.steady_count, m.tokens_per_step, s.marked_by, s.doubted
FROM step_method AS m
CROSS JOIN _step_sentences AS s
