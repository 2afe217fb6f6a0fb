/*
title = "Unified memory migrates while the program runs"
family = "copy"
meaning = """
Pages of cudaMallocManaged migrate when one side touches what is on the other: kernels wait for them, and so does
the host."""
action = """
Use cudaMemPrefetchAsync to the GPU before the kernels, and back before the host reads; cudaMemAdvise for data that both
read; or device memory and explicit copies."""
caveat = """
It is the first touch, which happens once."""
report = "unified-memory"
when = "SELECT 1 FROM memcpys WHERE migration_cause IS NOT NULL UNION ALL SELECT 1 FROM page_faults LIMIT 1"

[params.launch_ns]
default = 5000
help = "Less than this in total is not reported (5 µs: a launch)"
*/
WITH windows AS (
    SELECT start_ns, end_ns FROM steps WHERE phase = 'steady'
    UNION ALL
    SELECT start_ns, end_ns + 1 FROM wall WHERE NOT EXISTS (FROM steps WHERE phase = 'steady')
),
wall_total AS (
    SELECT
        sum(time_ns)::DOUBLE AS all_ns,
        count(DISTINCT (step, gpu_id))
            * any_value(CASE WHEN step IS NULL THEN 1 ELSE (SELECT tokens_per_step FROM step_method) END) AS gpu_tokens
    FROM step_budget
),
step_events AS MATERIALIZED (
    SELECT u.* FROM _unified_memory_events AS u ASOF JOIN windows AS o ON o.start_ns <= u.start_ns
    WHERE u.start_ns < o.end_ns
),
migrations AS (
    SELECT
        event AS copy_kind, size_bytes, duration_ns, in_kernel_ns, name, nvtx_path, cause = 'prefetch' AS is_prefetch
    FROM step_events WHERE cause IS NOT NULL
),
faults AS (
    SELECT split_part(event, ' ', 1) AS side, faults, duration_ns FROM step_events WHERE cause IS NULL
),
-- The kernel and range whose migrations took the most time.
costliest_place AS (
    SELECT name, nvtx_path FROM migrations WHERE NOT is_prefetch
    GROUP BY name, nvtx_path ORDER BY sum(duration_ns) DESC, count(*) DESC, name, nvtx_path LIMIT 1
),
migration_sentences AS (
    SELECT
        copy_kind,
        counted_text(count(*) / any_value(w.gpu_tokens), 'migration') || ' '
            || CASE copy_kind WHEN 'UM H2D' THEN 'to the GPU' WHEN 'UM D2H' THEN 'to the host' ELSE 'between GPUs' END
        || ' (' || format_bytes((sum(size_bytes) / any_value(w.gpu_tokens))::BIGINT) || ')' AS sentence
    FROM migrations, wall_total AS w WHERE NOT is_prefetch GROUP BY copy_kind
),
-- GPU page faults last until the pages have arrived. The host may have other work between two pages: that time is not
-- promised as a saving.
cost AS (
    SELECT
        greatest(sum(duration_ns), (SELECT coalesce(sum(duration_ns), 0) FROM faults))::DOUBLE AS cost_ns,
        sum(duration_ns)::DOUBLE AS moved_ns
    FROM migrations WHERE NOT is_prefetch
)
SELECT
    c.cost_ns / w.gpu_tokens AS recoverable_ns,
    least(100 * c.cost_ns / w.all_ns, 100) AS wall_pct,
    (SELECT concat_ws(' in ', operation_text(name), nvtx_path) FROM costliest_place) AS place,
    concat_ws('; ',
        (SELECT string_agg(sentence, ', ' ORDER BY copy_kind DESC) FROM migration_sentences) || ' ' || $per || ' take '
            || time_text(c.moved_ns / w.gpu_tokens),
        (
            SELECT time_text(sum(in_kernel_ns) / any_value(w.gpu_tokens)) || ' of it while kernels run'
            FROM migrations, wall_total AS w
            WHERE NOT is_prefetch
            HAVING sum(in_kernel_ns) > 0
        ),
        (SELECT string_agg(counted_text(number, side || ' page fault'), ', ' ORDER BY side DESC) || ' ' || $per
            FROM (
                SELECT side, sum(faults) / any_value(w.gpu_tokens) AS number
                FROM faults, wall_total AS w
                GROUP BY side
            )
            HAVING count(*) > 0),
        (
            SELECT format_bytes((bytes / w.gpu_tokens)::BIGINT) || ' more are prefetched'
            FROM (SELECT sum(size_bytes) AS bytes FROM migrations WHERE is_prefetch)
            WHERE bytes > 0
        )
    ) AS evidence
FROM cost AS c, wall_total AS w
WHERE c.cost_ns >= $launch_ns
