/*
description = """The functions that the CPU ran before the first and after the last operation on a GPU, by its samples:
    the three with the most samples; no row where no samples were taken."""
[columns]
edge = "start or end"
samples = "Samples of the processes that use CUDA in this time"
functions = """function_name, callers (the next functions outward; NULL if there are none) and samples_pct: the share of
    the samples, the largest first"""
*/
-- The function of a sample is its innermost frame outside of system libraries, interpreters and the profiler.
WITH edges AS (
    SELECT 'start' AS edge, (SELECT min(start_ns) FROM wall) AS from_ns, min(start_ns) AS until_ns FROM _gpu_busy_parts
    HAVING count(*) > 0
    UNION ALL
    SELECT 'end', max(end_ns), (SELECT max(end_ns) FROM wall) FROM _gpu_busy_parts
    HAVING count(*) > 0
),
edge_samples AS MATERIALIZED (
    SELECT e.edge, c.id AS sample_id
    FROM unscoped.COMPOSITE_EVENTS AS c
    JOIN edges AS e ON c.start >= e.from_ns AND c.start < e.until_ns
    WHERE pid_of(c.globalTid) IN (SELECT process_id FROM _call_counts)
),
-- The functions of a static CUDA runtime are named by numbers: all of them are one.
frames AS (
    SELECT frame_id, function, kind, regexp_replace(name, '^libcudart_static_[0-9a-f]{40}', 'the CUDA runtime') AS name
    FROM facts.cpu_frames
),
named_samples AS (
    SELECT
        s.edge, s.sample_id,
        list(f.name ORDER BY c.depth) FILTER (
            f.function IS NOT NULL AND f.kind NOT IN ('system', 'interpreter', 'profiler', 'unknown')
        ) AS own_names,
        min_by(f.name, c.depth) FILTER (f.kind <> 'unknown') AS any_name
    FROM edge_samples AS s
    JOIN facts.cpu_chains AS c ON c.of = 'sample' AND c.chain_id = s.sample_id
    JOIN frames AS f USING (frame_id)
    GROUP BY ALL
),
functions AS (
    SELECT
        edge, coalesce(own_names[1], any_name) AS function_name,
        mode(
            nullif(array_to_string(list_filter(
                own_names, lambda name, place: place > 1 AND NOT list_contains(own_names[:place - 1], name)
            )[:2], ', '), '')
            ORDER BY sample_id
        ) AS callers,
        count(*) AS samples
    FROM named_samples
    WHERE coalesce(own_names[1], any_name) IS NOT NULL
    GROUP BY edge, function_name
),
most_sampled AS (
    FROM functions QUALIFY row_number() OVER (PARTITION BY edge ORDER BY samples DESC, function_name) <= 3
),
totals AS (
    SELECT edge, count(*) AS samples FROM edge_samples GROUP BY edge
)
SELECT
    t.edge, t.samples,
    list({
        'function_name': f.function_name, 'callers': f.callers,
        'samples_pct': 100.0 * f.samples / t.samples
    } ORDER BY f.samples DESC, f.function_name) AS functions
FROM totals AS t JOIN most_sampled AS f USING (edge)
WHERE 20 * f.samples >= t.samples
GROUP BY t.edge, t.samples;
