/*
description = """What the CPU did while the GPU waited for a thread that was outside of CUDA calls, by place; no row
    where the trace does not say."""
stored = true
needs = "_cpu_pieces"
progress = "CPU work"
[columns]
counted_by = """activity, function, inclusive or stack: one of the four ways in which samples are counted, each with all
    rows"""
nvtx_path = "The NVTX ranges around it; NULL outside all ranges"
what = "What the thread did"
time_ns = """Time in which the GPU waited for it, per token of the steady steps; in total for the whole scope where no
    steps were found"""
wall_pct = "Share of the wall time"
work_pct = "Share of the CPU work that the GPU waited for"
samples = "Samples it is based on; NULL where no sample is needed"
function_name = "The function in most of the samples"
off_cpu_ns = "The part of time_ns in which the thread had no CPU; NULL where that was not recorded"
is_known = "TRUE if the activity is known; FALSE if `what` gives the reason that it is not"
*/
-- What the CPU work consisted of, by place, with samples counted in each of four ways. A place with fewer than 10
-- samples is not broken down: with 10 samples and an activity of half of the time, its share is accurate to a third
-- (the standard error is 16 points). Places with fewer samples and less than a twentieth of the time are combined. The
-- columns are those of the report cpu-work.
WITH steady_spans AS MATERIALIZED (
    SELECT gpu_id, start_ns, end_ns FROM step_gpus WHERE phase = 'steady'
    UNION ALL
    SELECT gpu_id, -9223372036854775808, 9223372036854775807 FROM (SELECT DISTINCT gpu_id FROM _cpu_pieces)
    WHERE NOT EXISTS (FROM steps WHERE phase = 'steady')
),
-- Divisors for times per token and for shares of the wall time.
divisors AS (
    SELECT
        count(*) * any_value(tokens) AS tokens,
        greatest((SELECT count(DISTINCT (step, gpu_id)) FROM step_budget), 1) * any_value(tokens) AS gpu_tokens,
        (SELECT sum(time_ns) FROM step_budget)::DOUBLE AS all_ns
    FROM _steady_windows
),
-- A piece counts for the step in which it begins, up to the end of that step. The rest counts for the step that begins
-- in the piece.
pieces AS (
    SELECT p.range_id, p.os_call_id, p.is_off, least(p.end_ns, s.end_ns) - p.start_ns AS time_ns
    FROM _cpu_pieces AS p ASOF JOIN steady_spans AS s ON s.gpu_id = p.gpu_id AND s.start_ns <= p.start_ns
    WHERE s.end_ns > p.start_ns
    UNION ALL
    SELECT p.range_id, p.os_call_id, p.is_off, least(p.end_ns, s.end_ns) - s.start_ns
    FROM _cpu_pieces AS p ASOF JOIN steady_spans AS s ON s.gpu_id = p.gpu_id AND s.start_ns < p.end_ns
    WHERE s.start_ns > p.start_ns
),
-- Samples of the pieces, outside of operating system calls.
steady_samples AS (
    SELECT g.sample_id, g.range_id
    FROM _gap_samples AS g ASOF JOIN steady_spans AS s ON s.gpu_id = g.gpu_id AND s.start_ns <= g.start_ns
    WHERE s.end_ns > g.start_ns AND g.os_call_id IS NULL
),
frames AS MATERIALIZED (
    SELECT c.chain_id AS sample_id, c.depth, f.name, f.function, f.module, f.kind, f.activity
    FROM facts.cpu_chains AS c
    JOIN facts.cpu_frames AS f USING (frame_id)
    WHERE c.of = 'sample' AND c.chain_id IN (SELECT sample_id FROM steady_samples)
),
-- What each sample says: its activity, the code that it was in, and its innermost function.
sample_labels AS (
    SELECT
        sample_id,
        count(*) FILTER (kind <> 'unknown') AS frames,
        min_by({activity: activity, name: name}, turn + depth) FILTER (activity IS NOT NULL) AS act,
        min_by(
            CASE
                WHEN kind IN ('python', 'operator') THEN name
                WHEN kind = 'interpreter' THEN 'Python''s interpreter'
                WHEN kind = 'profiler' THEN 'the profiler'
                ELSE 'code of ' || regexp_replace(module, '\.(cpython|abi3|so|pyd|dll|dylib|exe)\b.*', '')
            END,
            depth
        ) FILTER (kind NOT IN ('system', 'unknown')) AS code,
        min_by(regexp_replace(module, '\.so\b.*', ''), depth) FILTER (kind = 'system') AS system_module,
        coalesce(
            min_by(name, depth) FILTER (kind NOT IN ('system', 'unknown') AND function IS NOT NULL),
            min_by(name, depth) FILTER (kind <> 'unknown')
        ) AS named,
        min_by(name, depth) FILTER (kind <> 'unknown') AS function_name
    -- Formatting allocates and copies, not the other way round.
    FROM (
        SELECT
            *,
            CASE
                WHEN activity IN ('allocating host memory', 'copying host memory', 'page faults') THEN 65536 ELSE 0
            END AS turn
        FROM frames
    )
    GROUP BY sample_id
),
has_chains AS (
    SELECT coalesce(max(frames) > 1, false) AS is_chained FROM sample_labels
),
ranges AS (
    SELECT range_id, fold(path) AS nvtx_path
    FROM nvtx_nesting
    WHERE range_id IN (SELECT range_id FROM pieces UNION SELECT range_id FROM steady_samples)
),
samples AS MATERIALIZED (
    SELECT
        s.sample_id, r.nvtx_path, t.function_name, coalesce(t.act.name, t.named) AS label_function,
        coalesce(t.act.activity, t.code, 'code of ' || t.system_module, 'functions without a name') AS label,
        coalesce(t.frames, 0) AS frames, h.is_chained AS is_chained
    FROM steady_samples AS s
    CROSS JOIN has_chains AS h
    LEFT JOIN sample_labels AS t USING (sample_id)
    LEFT JOIN ranges AS r USING (range_id)
),
-- CPU work by NVTX path, and by what the thread did: in an operating system call, off the CPU, or computing.
piece_totals AS MATERIALIZED (
    SELECT
        r.nvtx_path, n.name AS os_call, p.os_call_id IS NOT NULL AS in_os, p.is_off, sum(p.time_ns)::BIGINT AS time_ns
    FROM pieces AS p
    LEFT JOIN ranges AS r USING (range_id)
    LEFT JOIN strings AS n ON n.name_id = p.os_call_id
    GROUP BY ALL
),
-- What each sample counts for, by counting method.
labels AS MATERIALIZED (
    SELECT 'activity' AS counted_by, sample_id, nvtx_path, label AS what, label_function AS function_name
    FROM samples
    WHERE frames > is_chained::INTEGER
    UNION ALL
    SELECT 'function', sample_id, nvtx_path, coalesce(function_name, 'functions without a name'), function_name
    FROM samples
    WHERE frames > 0
    UNION ALL
    SELECT DISTINCT ON (s.sample_id, f.name) 'inclusive', s.sample_id, s.nvtx_path, f.name, s.function_name
    FROM samples AS s JOIN frames AS f USING (sample_id)
    WHERE s.frames > s.is_chained::INTEGER AND f.kind <> 'unknown'
    UNION ALL
    SELECT
        'stack', s.sample_id, s.nvtx_path, string_agg(replace(f.name, chr(59), ','), chr(59) ORDER BY f.depth DESC),
        any_value(s.function_name)
    FROM samples AS s JOIN frames AS f USING (sample_id)
    WHERE s.frames > s.is_chained::INTEGER AND f.kind <> 'unknown'
    GROUP BY s.sample_id, s.nvtx_path
),
-- The places that are shown separately.
path_sizes AS MATERIALIZED (
    SELECT
        p.nvtx_path,
        coalesce(n.counted >= 10 OR p.time_ns >= 0.05::DOUBLE * sum(p.time_ns) OVER (), false) AS is_own
    FROM (SELECT nvtx_path, sum(time_ns) AS time_ns FROM piece_totals GROUP BY ALL) AS p
    LEFT JOIN (SELECT nvtx_path, count(*) AS counted FROM labels WHERE counted_by = 'activity' GROUP BY ALL) AS n
        ON n.nvtx_path IS NOT DISTINCT FROM p.nvtx_path
),
place_names AS MATERIALIZED (
    SELECT
        nvtx_path,
        CASE
            WHEN is_own OR (SELECT count(*) FROM path_sizes WHERE NOT is_own) = 1 THEN nvtx_path ELSE '(other ranges)'
        END AS place
    FROM path_sizes
),
counting_methods AS (
    FROM (VALUES ('activity'), ('function'), ('inclusive'), ('stack')) AS w(counted_by)
),
-- Computing time by counting method and place.
on_cpu_times AS (
    SELECT w.counted_by, n.place, sum(p.time_ns)::BIGINT AS on_ns, bool_and(p.is_off IS NOT NULL) AS has_switches
    FROM piece_totals AS p JOIN place_names AS n ON n.nvtx_path IS NOT DISTINCT FROM p.nvtx_path
    CROSS JOIN counting_methods AS w
    WHERE NOT p.in_os AND p.is_off IS NOT true
    GROUP BY ALL
),
-- All samples by place.
samples_by_place AS (
    SELECT n.place, count(*) AS samples
    FROM samples AS s JOIN place_names AS n ON n.nvtx_path IS NOT DISTINCT FROM s.nvtx_path
    GROUP BY ALL
),
-- Samples with a label by counting method and place.
labeled_by_place AS (
    SELECT l.counted_by, n.place, count(DISTINCT l.sample_id) AS samples
    FROM labels AS l JOIN place_names AS n ON n.nvtx_path IS NOT DISTINCT FROM l.nvtx_path
    GROUP BY ALL
),
-- Samples come at even intervals, so the number of samples gives the time, except at the edges of gaps.
sampled_times AS MATERIALIZED (
    SELECT
        c.counted_by, c.place, c.on_ns, c.has_switches, coalesce(n.samples, 0) AS samples,
        coalesce(t.samples, 0) AS all_samples, p.period_ns,
        CASE
            WHEN p.period_ns IS NULL THEN 0
            WHEN c.has_switches
                AND all_samples * p.period_ns
                    >= c.on_ns - greatest(0.2 * c.on_ns, 2 * p.period_ns * sqrt(all_samples + 1))
                THEN c.on_ns
            ELSE least(c.on_ns, all_samples * p.period_ns)
        END AS sampled_ns
    FROM on_cpu_times AS c
    LEFT JOIN labeled_by_place AS n ON n.counted_by = c.counted_by AND n.place IS NOT DISTINCT FROM c.place
    LEFT JOIN samples_by_place AS t ON t.place IS NOT DISTINCT FROM c.place
    LEFT JOIN _sample_period AS p ON true
),
-- One row per place and activity, including the time that no sample explains.
activities AS (
    SELECT
        j.counted_by, j.place, l.what, j.sampled_ns * count(*) / any_value(j.samples) AS time_ns, count(*) AS samples,
        mode(l.function_name ORDER BY l.sample_id) AS function_name, 0 AS off_cpu_ns, true AS is_known
    FROM labels AS l
    JOIN place_names AS n ON n.nvtx_path IS NOT DISTINCT FROM l.nvtx_path
    JOIN sampled_times AS j ON j.counted_by = l.counted_by AND j.place IS NOT DISTINCT FROM n.place
    WHERE j.samples >= 10
    GROUP BY j.counted_by, j.place, j.sampled_ns, l.what
    UNION ALL
    SELECT counted_by, place, 'on the CPU, too few samples to tell', sampled_ns, all_samples, NULL, 0, false
    FROM sampled_times WHERE samples < 10 AND sampled_ns > 0
    UNION ALL
    SELECT
        counted_by, place, CASE WHEN period_ns IS NULL THEN 'outside of OS calls' ELSE 'not sampled' END,
        on_ns - sampled_ns, NULL, NULL,
        CASE WHEN has_switches THEN 0 END, false
    FROM sampled_times WHERE on_ns > sampled_ns
    UNION ALL
    SELECT
        w.counted_by, n.place,
        CASE WHEN p.in_os THEN 'OS call: ' || coalesce(p.os_call, '(no name)') ELSE 'off the CPU' END, sum(p.time_ns),
        NULL, NULL, CASE WHEN bool_and(p.is_off IS NOT NULL) THEN coalesce(sum(p.time_ns) FILTER (p.is_off), 0) END,
        true
    FROM piece_totals AS p
    JOIN place_names AS n ON n.nvtx_path IS NOT DISTINCT FROM p.nvtx_path
    CROSS JOIN counting_methods AS w
    WHERE p.in_os OR p.is_off
    GROUP BY ALL
)
SELECT
    p.counted_by, p.place AS nvtx_path, p.what, p.time_ns / r.gpu_tokens AS time_ns,
    100 * p.time_ns / r.all_ns AS wall_pct,
    100 * p.time_ns / (SELECT sum(time_ns) FROM piece_totals)::DOUBLE AS work_pct, p.samples, p.function_name,
    p.off_cpu_ns / r.gpu_tokens AS off_cpu_ns, p.is_known
FROM activities AS p, divisors AS r;
