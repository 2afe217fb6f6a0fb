/*
description = """One row: how much of the GPU time of a step the catalog of constructs names and judges. No row if
    nothing ran on a GPU."""
[columns]
gpu_ns = "Time of all operations of a step, added up"
named_pct = "Share of it in constructs of the catalog, without CUDA graphs that are one operation"
hand_written_pct = "Share in kernels that no known library or generator made"
neither_pct = "Share in kernels of known libraries and in other operations that the catalog does not name"
judged_pct = "Share of the named time with a judgment: efficient, or replaceable"
efficient_pct = "Share of gpu_ns that is efficient"
replaceable_pct = "Share of gpu_ns that something replaces"
graph_pct = "Share in CUDA graphs that are one operation: the trace does not have what they run"
*/
-- A graph that is one operation is no construct of a library: what it runs is unknown.
WITH times AS (
    SELECT
        sum(total_ns) AS gpu_ns,
        coalesce(sum(total_ns) FILTER (kind = 'graph'), 0) AS graph_ns,
        coalesce(sum(total_ns) FILTER (kind <> 'graph' AND construct IS NOT NULL), 0) AS named_ns,
        coalesce(sum(total_ns) FILTER (construct IS NULL AND provenance = 'hand-written'), 0) AS hand_written_ns,
        coalesce(sum(total_ns) FILTER (kind <> 'graph' AND construct IS NOT NULL AND judgment IS NOT NULL), 0)
            AS judged_ns,
        coalesce(sum(total_ns) FILTER (judgment = 'efficient'), 0) AS efficient_ns,
        coalesce(sum(total_ns) FILTER (judgment = 'replaceable'), 0) AS replaceable_ns
    FROM step_operations
    HAVING count(*) > 0
)
SELECT
    gpu_ns, 100 * named_ns / nullif(gpu_ns, 0) AS named_pct, 100 * hand_written_ns / nullif(gpu_ns, 0) AS hand_written_pct,
    100 * (gpu_ns - named_ns - hand_written_ns - graph_ns) / nullif(gpu_ns, 0) AS neither_pct,
    100 * judged_ns / nullif(named_ns, 0) AS judged_pct, 100 * efficient_ns / nullif(gpu_ns, 0) AS efficient_pct,
    100 * replaceable_ns / nullif(gpu_ns, 0) AS replaceable_pct, 100 * graph_ns / nullif(gpu_ns, 0) AS graph_pct
FROM times;
