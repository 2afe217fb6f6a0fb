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
WITH owners AS (
    SELECT start_ns, end_ns FROM steps WHERE phase = 'steady'
    UNION ALL
    SELECT start_ns, end_ns + 1 FROM wall WHERE NOT EXISTS (FROM steps WHERE phase = 'steady')
),
walls AS (
    SELECT
        sum(time_ns)::DOUBLE AS all_ns,
        count(DISTINCT (step, gpu_id))
            * any_value(CASE WHEN step IS NULL THEN 1 ELSE (SELECT tokens_per_step FROM step_method) END) AS gpu_tokens
    FROM step_budget
),
happened AS MATERIALIZED (
    SELECT u.* FROM _unified_memory_events AS u ASOF JOIN owners AS o ON o.start_ns <= u.start_ns
    WHERE u.start_ns < o.end_ns
),
moved AS (
    SELECT
        event AS copy_kind, size_bytes, duration_ns, in_kernel_ns, name, nvtx_path, cause = 'prefetch' AS is_asked_for
    FROM happened WHERE cause IS NOT NULL
),
faults AS (
    SELECT split_part(event, ' ', 1) AS side, faults, duration_ns FROM happened WHERE cause IS NULL
),
-- The kernel and range whose migrations took most time.
most AS (
    SELECT name, nvtx_path FROM moved WHERE NOT is_asked_for
    GROUP BY name, nvtx_path ORDER BY sum(duration_ns) DESC, count(*) DESC, name, nvtx_path LIMIT 1
),
said AS (
    SELECT
        copy_kind,
        counted_text(count(*) / any_value(w.gpu_tokens), 'migration') || ' '
            || CASE copy_kind WHEN 'UM H2D' THEN 'to the GPU' WHEN 'UM D2H' THEN 'to the host' ELSE 'between GPUs' END
        || ' (' || format_bytes((sum(size_bytes) / any_value(w.gpu_tokens))::BIGINT) || ')' AS sentence
    FROM moved, walls AS w WHERE NOT is_asked_for GROUP BY copy_kind
),
-- A GPU's faults last until the pages are there. The host may have something to do between two pages: that time is not
-- promised.
cost AS (
    SELECT
        greatest(sum(duration_ns), (SELECT coalesce(sum(duration_ns), 0) FROM faults))::DOUBLE AS cost_ns,
        sum(duration_ns)::DOUBLE AS moved_ns
    FROM moved WHERE NOT is_asked_for
)
SELECT
    c.cost_ns / w.gpu_tokens AS recoverable_ns,
    least(100 * c.cost_ns / w.all_ns, 100) AS wall_pct,
    (SELECT concat_ws(' in ', operation_text(name), nvtx_path) FROM most) AS place,
    concat_ws('; ',
        (SELECT string_agg(sentence, ', ' ORDER BY copy_kind DESC) FROM said) || ' ' || $per || ' take '
            || time_text(c.moved_ns / w.gpu_tokens),
        (
            SELECT time_text(sum(in_kernel_ns) / any_value(w.gpu_tokens)) || ' of it while kernels run'
            FROM moved, walls AS w
            WHERE NOT is_asked_for
            HAVING sum(in_kernel_ns) > 0
        ),
        (SELECT string_agg(counted_text(number, side || ' page fault'), ', ' ORDER BY side DESC) || ' ' || $per
            FROM (SELECT side, sum(faults) / any_value(w.gpu_tokens) AS number FROM faults, walls AS w GROUP BY side)
            HAVING count(*) > 0),
        (
            SELECT format_bytes((bytes / w.gpu_tokens)::BIGINT) || ' more are prefetched'
            FROM (SELECT sum(size_bytes) AS bytes FROM moved WHERE is_asked_for)
            WHERE bytes > 0
        )
    ) AS evidence
FROM cost AS c, walls AS w
WHERE c.cost_ns >= $launch_ns
