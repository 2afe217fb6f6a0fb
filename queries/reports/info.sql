/*
title = "What is in the trace"
topic = "program"
place = 4
in_help = true
question = "What is in the trace, what was not captured, and which nsys flag would capture it?"
examples = ["", "--format json"]
description = """
Counts are rows of the trace in scope; what is out of scope is not reported as unused or missing. wall_ns is the
time from the first to the last CUDA event; gpu_busy_pct is the share of it in which the GPU was busy: the union of
its kernels, copies, memsets and whole graphs. gpu_time_ns adds up a process's GPU operations. The environment
variables, host and user in the trace are never shown."""
reading = """
Read the section missing first: it lists what was not captured and cannot be answered, each with the flag that
captures it. A gpu_busy_pct well under 90: see gaps; else see top. Where graphs ran as a whole, capture with
--cuda-graph-trace=node before any ranking of kernels. A warning of lost events makes every count a lower bound."""
empty = "The trace has no description of the capture and no events"

[columns]
section = "capture, gpu, process, events, graphs, diagnostics, missing"
metric = "What the row is about"
value = "Number of the metric, in the unit that its name ends in; NULL where it is text, or was not captured"
detail = "The text, or more about the number; in section missing, how to capture it"

[notes]
next.text = """
<{?is_whole}Most of what the GPU runs is hidden in CUDA graphs: capture with --cuda-graph-trace=node><{#gpus:GPU|A GPU
is} idle {idle_pct} of the wall time. Next: nsys-insight diagnose><{?is_busy}The GPU is nearly always busy. Next:
nsys-insight top><{?has_ranges}; nsys-insight nvtx by range, and --nvtx NAME narrows every report><{?lacks_ranges};
nsys-insight per-token --tokens N by step>"""
next.query = """
SELECT
    is_whole, gpus, CASE WHEN NOT is_whole AND idle_pct > 10 THEN idle_pct END AS idle_pct,
    NOT is_whole AND idle_pct <= 10 AS is_busy, has_ranges, NOT has_ranges AS lacks_ranges
FROM (
    SELECT
        count(*) FILTER (metric = 'gpu_busy_pct') AS gpus,
        coalesce(max(value) FILTER (metric = 'whole_graph_pct') >= 50, false) AS is_whole,
        100 - min(value) FILTER (metric = 'gpu_busy_pct') AS idle_pct,
        count(*) FILTER (metric = 'nvtx_ranges' AND section = 'events') > 0 AS has_ranges
    FROM answer
)
WHERE gpus > 0"""
*/
WITH is_unscoped AS (
    -- Whether there is no scope: what a part of the trace lacks says nothing about the full trace, or about the
    -- capture.
    SELECT
        coalesce(
            nvtx, steps, from_ns::VARCHAR, to_ns::VARCHAR, device_id::VARCHAR, process_id::VARCHAR, stream_id::VARCHAR
        ) IS NULL
    FROM scope
),
wall_total AS MATERIALIZED (
    SELECT sum(duration_ns) AS wall_ns FROM wall
),
calls AS MATERIALIZED (
    FROM _call_counts
),
ops AS MATERIALIZED (
    SELECT * RENAME (operations AS ops) FROM _operation_counts
),
graphs AS MATERIALIZED (
    FROM _graph_tracing
),
report_rows(place, rank, section, metric, value, detail) AS (
    SELECT 10, 0, 'capture', 'nsys_version', NULL, nsys_version || coalesce(', export schema ' || schema_version, '')
    FROM _capture_settings
    UNION ALL
    SELECT 11, row_number() OVER (ORDER BY process), 'capture', 'command', NULL, line FROM _command_lines
    UNION ALL
    SELECT 12, 0, 'capture', 'capture_ns', capture_ns, 'begun ' || begun || ' UTC' FROM _capture_settings
    UNION ALL
    SELECT 13, 0, 'capture', 'wall_ns', wall_ns, CASE
        WHEN nvtx IS NOT NULL
            THEN 'in the ' || range_count || CASE range_count WHEN 1 THEN ' range' ELSE ' ranges' END || ' of '
                || if(is_phase, '--phase', '--nvtx')
        WHEN steps = 'steady' THEN 'the wall time of the steady steps'
        WHEN steps IS NOT NULL THEN 'the wall time of step ' || steps
        WHEN coalesce(from_ns, to_ns) IS NOT NULL THEN 'in the window of --from and --to'
        ELSE 'from the first to the last CUDA event'
    END
    FROM wall_total, scope WHERE wall_ns IS NOT NULL
    UNION ALL
    SELECT
        20, gpu_id, 'gpu', 'gpu_busy_pct', 100.0 * busy_ns / wall_ns,
        concat_ws(': ', 'GPU ' || gpu_id, nullif(facts, ''))
    FROM _gpu_inventory, wall_total WHERE busy_ns IS NOT NULL
    UNION ALL
    -- Where no work of a GPU is recorded, it may have been used all the same.
    SELECT 21, 0, 'gpu', CASE WHEN EXISTS (FROM used_gpus) THEN 'gpus_not_used' ELSE 'gpus' END, count(*),
        string_agg(DISTINCT name, ', ' ORDER BY name)
    FROM _gpu_inventory WHERE busy_ns IS NULL AND (FROM is_unscoped) HAVING count(*) > 0
    UNION ALL
    SELECT 30, -c.gpu_ns, 'process', 'gpu_time_ns', c.gpu_ns,
        concat_ws(' ', c.process_id, n.name) || format(
            ': {:,} API calls on {} thread{}, {:,} kernels on {} stream{}',
            c.calls, c.threads, CASE WHEN c.threads = 1 THEN '' ELSE 's' END,
            c.kernels, c.streams, CASE WHEN c.streams = 1 THEN '' ELSE 's' END
        )
    FROM _cuda_processes AS c
    LEFT JOIN (SELECT process_id, min(name) AS name FROM processes GROUP BY process_id) AS n USING (process_id)
    UNION ALL
    SELECT 31, 0, 'process', 'processes_without_cuda', count(DISTINCT process_id), NULL
    FROM processes ANTI JOIN _cuda_processes USING (process_id) WHERE (FROM is_unscoped) HAVING count(*) > 0
    UNION ALL
    SELECT 40, 0, 'events', 'kernels', kernels, names || ' names; ' || CASE launched
        WHEN kernels THEN 'all with their launch call'
        ELSE format('{:,} without their launch call', kernels - launched)
    END
    FROM (
        SELECT sum(ops)::BIGINT AS kernels, count(DISTINCT name_id) AS names, sum(called)::BIGINT AS launched
        FROM ops WHERE kind = 'kernel'
    )
    WHERE kernels > 0
    UNION ALL
    SELECT 41, 0, 'events', 'copies', sum(ops), string_agg(DISTINCT label, ', ' ORDER BY label)
    FROM ops WHERE kind = 'copy' HAVING count(*) > 0
    UNION ALL
    SELECT 42, 0, 'events', 'memsets', sum(ops), NULL FROM ops WHERE kind = 'memset' HAVING count(*) > 0
    UNION ALL
    SELECT 43, 0, 'events', 'api_calls', sum(calls), count(DISTINCT name) || ' functions' FROM calls HAVING count(*) > 0
    UNION ALL
    SELECT 44, 0, 'events', 'syncs', count(*), 'waits that CUPTI recorded'
    FROM syncs WHERE sync_type <> 'poll' HAVING count(*) > 0
    UNION ALL
    SELECT 44, 1, 'events', 'polls', count(*), 'rows of cudaStreamQuery and cudaEventQuery, which do not wait'
    FROM syncs WHERE sync_type = 'poll' HAVING count(*) > 0
    UNION ALL
    SELECT 45, 0, 'events', 'nvtx_ranges', sum(ranges), count(*) || ' names; the most frequent: '
        || array_to_string(
            list_slice(list(left(name, 60) || ' (' || ranges || ')' ORDER BY ranges DESC, name), 1, 5), ', '
        )
    FROM (SELECT name, count(*) AS ranges FROM nvtx_ranges GROUP BY name) HAVING count(*) > 0
    UNION ALL
    SELECT 46, 0, 'events', 'memory_events', count(*), 'allocations and deallocations, with sizes'
    FROM memory_events HAVING count(*) > 0
    UNION ALL
    SELECT 47, 0, 'events', 'gpu_metric_samples', count(*), count(DISTINCT name) || ' metrics'
    FROM gpu_metrics HAVING count(*) > 0
    UNION ALL
    SELECT 48, 0, 'events', 'os_calls', count(*), 'calls into the operating system''s libraries'
    FROM os_calls HAVING count(*) > 0
    UNION ALL
    SELECT 49, 0, 'events', 'video_engine_ranges', count(*), string_agg(DISTINCT engine, ', ' ORDER BY engine)
    FROM video_work HAVING count(*) > 0
    UNION ALL
    SELECT 50, 0, 'graphs', 'graph_launch_calls', calls, CASE
        WHEN wholes > 0 AND node_kernels > 0 THEN 'traced partly per graph, partly per node'
        WHEN wholes > 0 THEN 'traced per graph: their kernels are not in the trace'
        WHEN node_kernels > 0 THEN 'traced per node: their kernels are in the trace'
        ELSE 'what they ran is not in the trace'
    END
    FROM graphs WHERE calls > 0 OR wholes > 0 OR node_kernels > 0
    UNION ALL
    SELECT 51, 0, 'graphs', 'node_kernels', node_kernels, 'kernels of graphs that were traced per node'
    FROM graphs WHERE node_kernels > 0
    UNION ALL
    SELECT 52, 0, 'graphs', 'whole_graph_pct', whole_pct,
        wholes || ' graphs ran as a whole: this share of GPU time is not broken down into kernels'
    FROM graphs WHERE wholes > 0
    UNION ALL
    -- Messages about lost CUDA events come first.
    SELECT
        CASE WHEN is_cuda_loss THEN 59 WHEN severity = 'error' THEN 60 ELSE 61 END, -count(*), 'diagnostics',
        severity || 's', count(*),
        left(regexp_replace(trim(message), '\s+', ' ', 'g'), 300)
    FROM diagnostics WHERE severity IN ('error', 'warning') GROUP BY severity, message, is_cuda_loss
    UNION ALL
    SELECT 62, 0, 'diagnostics', 'profiler_overhead_ns', sum(duration_ns),
        'CPU time spent in the profiler'
    FROM profiler_overheads HAVING count(*) > 0
    UNION ALL
    SELECT 70, place, 'missing', metric, NULL, detail FROM _missing_data
)
SELECT section, metric, value::DOUBLE AS value, detail
FROM report_rows
WHERE value IS NOT NULL OR detail IS NOT NULL
ORDER BY place, rank, detail
