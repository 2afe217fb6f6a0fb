/*
description = "What the wall time of the steady steps consists of, one row per part of `step_budget`."
[columns]
part = "Part of the wall time, as in `step_budget`"
time_ns = "Sum over steps and GPUs"
wall_pct = "Share of the wall time"
evidence = "What the host did in it, with shares of the wall time; NULL if that adds nothing to the part"
*/
WITH hosts AS (
    SELECT
        part,
        CASE
            WHEN host IS NOT NULL THEN host
            WHEN part = 'copy' THEN 'non-overlapped copies'
            WHEN part = 'communication' THEN 'communication alone'
        END AS host,
        sum(time_ns)::DOUBLE AS time_ns
    FROM step_budget
    GROUP BY ALL
)
SELECT
    h.part, sum(h.time_ns) AS time_ns, 100 * sum(h.time_ns) / any_value(w.all_ns) AS wall_pct,
    string_agg(h.host || ' ' || round(100 * h.time_ns / w.all_ns, 1) || '%', ', ' ORDER BY h.time_ns DESC, h.host)
        FILTER (h.host <> h.part AND 100 * h.time_ns / w.all_ns >= 0.05) AS evidence
FROM hosts AS h, _step_walls AS w
GROUP BY h.part;
