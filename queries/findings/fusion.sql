/*
title = "Kernels can be fused"
family = "fusion"
overlaps = true
meaning = """
The same chains of small kernels repeat in every step. As one kernel each, they would need fewer launches and fewer
passes over memory."""
action = """
Use torch.compile, a library's fused kernel, or one in Triton or CUDA; start with the first chain."""
caveat = """
The fused kernel is slower or costs more to launch: from Python, a Triton launch takes as long as three eager ones."""
report = "fusion"
*/
WITH chosen_candidates AS (
    SELECT *, row_number() OVER (PARTITION BY verdict ORDER BY candidate) AS turn FROM fusion_report WHERE chosen
)
SELECT
    s.together_high_ns / m.tokens_per_step AS recoverable_ns,
    100 * s.together_high_ns / s.wall_ns AS wall_pct,
    NULL AS place,
    (
        SELECT count(*) || CASE count(*) WHEN 1 THEN ' chain saves ' ELSE ' chains together save ' END
        FROM chosen_candidates
    )
        || CASE
            WHEN s.together_low_ns > 0 THEN time_text(s.together_low_ns / m.tokens_per_step) || ' to ' ELSE 'up to '
        END
        || time_text(s.together_high_ns / m.tokens_per_step)
        || CASE WHEN s.together_low_ns > 0 THEN '' ELSE ', or nothing where Python launches the fused kernels' END
        || ': '
        || (SELECT string_agg(
                CASE WHEN pattern = 'novel' THEN kernel_count || ' kernels' ELSE pattern END || ', ' || per_step
                    || ' a step',
                '; '
            ORDER BY candidate
            ) FROM chosen_candidates WHERE turn <= 3)
        || (SELECT CASE WHEN count(*) > 3 THEN '; and ' || count(*) - 3 || ' more' ELSE '' END FROM chosen_candidates)
        || (
            SELECT
                CASE WHEN bool_or(host_high_ns > kernel_high_ns + gap_ns) THEN '; ' || profiler_share_text() ELSE '' END
            FROM chosen_candidates
        )
        AS evidence
FROM fusion_step AS s
CROSS JOIN step_method AS m
WHERE EXISTS (FROM chosen_candidates) AND s.together_high_ns > 0
