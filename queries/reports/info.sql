/*
title = "What is in the trace"
topic = "program"
place = 4
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
value = "Its number, in the unit that the metric's name ends in; NULL where it is text, or was not captured"
detail = "The text, or more about the number; in section missing, how to capture it"

[notes]
next = """
SELECT CASE
    WHEN count(*) FILTER (metric = 'gpu_busy_pct') = 0 THEN NULL
    WHEN max(value) FILTER (metric = 'whole_graph_pct') >= 50
        THEN 'next: most of what the GPU runs is hidden in CUDA graphs: capture with --cuda-graph-trace=node'
    WHEN min(value) FILTER (metric = 'gpu_busy_pct') < 90
        THEN 'next: ' || CASE count(*) FILTER (metric = 'gpu_busy_pct') WHEN 1 THEN 'the' ELSE 'a' END
            || ' GPU is idle ' || round(100 - min(value) FILTER (metric = 'gpu_busy_pct'), 1)
            || ' % of the wall time: nsys-insight gaps shows why'
    ELSE 'next: the GPU is nearly always busy: nsys-insight top shows with which kernels'
END || CASE WHEN count(*) FILTER (metric = 'nvtx_ranges' AND section = 'events') > 0
    THEN '; nsys-insight nvtx by range, and --nvtx NAME narrows every report'
    ELSE '; nsys-insight per-token --tokens N by step' END
FROM answer"""
*/
WITH is_whole AS (
    -- That there is nothing in a part of the trace says nothing about the whole, or about the capture.
    SELECT
        coalesce(
            nvtx, steps, from_ns::VARCHAR, to_ns::VARCHAR, device_id::VARCHAR, process_id::VARCHAR, stream_id::VARCHAR
        ) IS NULL
    FROM scope
),
walls AS MATERIALIZED (
    SELECT sum(duration_ns) AS wall_ns FROM wall
),
calls AS MATERIALIZED (
    FROM _call_counts
),
ops AS MATERIALIZED (
    SELECT * RENAME (operations AS ops) FROM _operation_counts
),
command AS (
    SELECT
        split_part(name, ':', 1) AS process,
        string_agg(value, ' ' ORDER BY try_cast(split_part(name, '_', -1) AS BIGINT) NULLS FIRST) AS line
    FROM capture
    WHERE regexp_matches(name, '^PROCESS_\d+:(COMMAND|ARGUMENT_\d+)$')
    GROUP BY process
),
settings AS (
    SELECT
        max(value) FILTER (WHERE name = 'EXPORT_PRODUCT_VERSION') AS nsys_version,
        max(value) FILTER (WHERE name = 'EXPORT_SCHEMA_VERSION') AS schema_version,
        max(value) FILTER (WHERE name = 'CAPTURE_DURATION_NS')::BIGINT AS capture_ns,
        max(replace(value, 'T', ' ')) FILTER (WHERE name = 'CAPTURE_START_UTC') AS begun,
        count(*) FILTER (WHERE name LIKE '%:CUDA_SKIP_SOME_API_CALLS' AND value = 'true') > 0 AS skips_calls
    FROM capture
),
all_gpus AS (
    SELECT
        coalesce(u.gpu_id, g.gpu_id) AS gpu_id,
        u.busy_ns,
        g.name,
        concat_ws(
            ', ', g.name, g.sm_count || ' SMs',
            round(g.memory_bytes / 1073741824, 1) || ' GiB'
                || coalesce(' at ' || round(g.memory_bytes_per_s / 1e9)::BIGINT || ' GB/s', ''),
            'compute capability ' || g.compute_capability
        ) AS facts
    FROM used_gpus AS u
    FULL JOIN (FROM gpus QUALIFY row_number() OVER (PARTITION BY gpu_id ORDER BY name, pci_bus) = 1) AS g USING (gpu_id)
),
cuda_processes AS (
    SELECT
        process_id, coalesce(calls, 0)::BIGINT AS calls, coalesce(threads, 0) AS threads,
        coalesce(kernels, 0)::BIGINT AS kernels, coalesce(streams, 0) AS streams, coalesce(gpu_ns, 0) AS gpu_ns
    FROM (SELECT process_id, sum(calls) AS calls, count(DISTINCT thread_id) AS threads FROM calls GROUP BY process_id)
    FULL JOIN (
        SELECT
            process_id, sum(ops) FILTER (WHERE kind = 'kernel') AS kernels,
            count(DISTINCT (device_id, stream_id)) AS streams, sum(gpu_ns) AS gpu_ns
        FROM ops
        GROUP BY process_id
    ) USING (process_id)
),
graphs AS MATERIALIZED (
    SELECT
        (SELECT sum(calls) FROM calls WHERE call_group = 'graph launch') AS calls,
        (SELECT count(*) FROM _kernel_times WHERE graph_node_id > 0) AS node_kernels,
        (SELECT sum(ops) FROM ops WHERE kind = 'graph') AS wholes,
        (SELECT 100.0 * sum(gpu_ns) FILTER (WHERE kind = 'graph') / sum(gpu_ns) FROM ops) AS whole_pct
),
found(place, rank, section, metric, value, detail) AS (
    SELECT 10, 0, 'capture', 'nsys_version', NULL, nsys_version || coalesce(', export schema ' || schema_version, '')
    FROM settings
    UNION ALL
    SELECT 11, row_number() OVER (ORDER BY process), 'capture', 'command', NULL, line FROM command
    UNION ALL
    SELECT 12, 0, 'capture', 'capture_ns', capture_ns, 'begun ' || begun || ' UTC' FROM settings
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
    FROM walls, scope WHERE wall_ns IS NOT NULL
    UNION ALL
    SELECT
        20, gpu_id, 'gpu', 'gpu_busy_pct', 100.0 * busy_ns / wall_ns,
        concat_ws(': ', 'GPU ' || gpu_id, nullif(facts, ''))
    FROM all_gpus, walls WHERE busy_ns IS NOT NULL
    UNION ALL
    SELECT 21, 0, 'gpu', 'gpus_not_used', count(*), string_agg(DISTINCT name, ', ' ORDER BY name)
    FROM all_gpus WHERE busy_ns IS NULL AND (FROM is_whole) HAVING count(*) > 0
    UNION ALL
    SELECT 30, -c.gpu_ns, 'process', 'gpu_time_ns', c.gpu_ns,
        concat_ws(' ', c.process_id, n.name) || format(
            ': {:,} API calls on {} thread{}, {:,} kernels on {} stream{}',
            c.calls, c.threads, CASE WHEN c.threads = 1 THEN '' ELSE 's' END,
            c.kernels, c.streams, CASE WHEN c.streams = 1 THEN '' ELSE 's' END
        )
    FROM cuda_processes AS c
    LEFT JOIN (SELECT process_id, min(name) AS name FROM processes GROUP BY process_id) AS n USING (process_id)
    UNION ALL
    SELECT 31, 0, 'process', 'processes_without_cuda', count(DISTINCT process_id), NULL
    FROM processes ANTI JOIN cuda_processes USING (process_id) WHERE (FROM is_whole) HAVING count(*) > 0
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
    SELECT 44, 0, 'events', 'syncs', count(*), 'waits that CUPTI recorded' FROM sync_events HAVING count(*) > 0
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
    -- Those that lost what CUDA did come first.
    SELECT
        CASE WHEN is_cuda_loss THEN 59 WHEN severity = 'error' THEN 60 ELSE 61 END, -count(*), 'diagnostics',
        severity || 's', count(*),
        left(regexp_replace(trim(message), '\s+', ' ', 'g'), 300)
    FROM diagnostics WHERE severity IN ('error', 'warning') GROUP BY severity, message, is_cuda_loss
    UNION ALL
    SELECT 62, 0, 'diagnostics', 'profiler_overhead_ns', sum(duration_ns),
        'host time that the profiler took: it is not the application''s'
    FROM profiler_overheads HAVING count(*) > 0
    UNION ALL
    SELECT 70, place, 'missing', metric, NULL, detail
    FROM scope, LATERAL (
        VALUES
            (
                0, 'kernels', 'nsys profile -t cuda; or the program did not use the GPU',
                NOT EXISTS (FROM ops) AND NOT EXISTS (FROM _unrecorded)
            ),
            (
                0, 'kernels', 'a newer nsys or driver, or less at a time; and let the program end by itself',
                EXISTS (FROM _unrecorded WHERE what = 'kernels')
            ),
            (1, 'graph_kernels', '--cuda-graph-trace=node', EXISTS (FROM graphs WHERE wholes > 0)),
            (2, 'nvtx_ranges', '-t cuda,nvtx, and ranges around the program''s steps', NOT EXISTS (FROM nvtx_ranges)),
            (3, 'memory_events', '--cuda-memory-usage=true', NOT EXISTS (FROM memory_events)),
            (4, 'gpu_metric_samples', '--gpu-metrics-devices=all', NOT EXISTS (FROM gpu_metrics)),
            (5, 'os_calls', '-t osrt', NOT EXISTS (FROM os_calls)),
            (6, 'unimportant_api_calls', '--cuda-trace-all-apis=true', (SELECT skips_calls FROM settings))
    ) AS m (place, metric, detail, is_missing)
    WHERE is_missing AND (FROM is_whole)
)
SELECT section, metric, value::DOUBLE AS value, detail
FROM found
WHERE value IS NOT NULL OR detail IS NOT NULL
ORDER BY place, rank, detail
