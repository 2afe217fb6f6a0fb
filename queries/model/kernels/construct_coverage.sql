/*
description = """One row: how much of the GPU time of a step the catalog of constructs names and judges. No row if
    nothing ran on a GPU."""
[columns]
gpu_ns = "Time of all operations of a step, added up"
named_pct = "Share of it in constructs of the catalog"
hand_written_pct = "Share in kernels that no known library or generator made"
neither_pct = "Share in kernels of known libraries and in other operations that the catalog does not name"
judged_pct = "Share of the named time with a judgment: efficient, or replaceable"
efficient_pct = "Share of gpu_ns that is efficient"
replaceable_pct = "Share of gpu_ns that something replaces"
*/
SELECT
    sum(total_ns) AS gpu_ns,
    100 * coalesce(sum(total_ns) FILTER (construct IS NOT NULL), 0) / nullif(sum(total_ns), 0) AS named_pct,
    100 * coalesce(sum(total_ns) FILTER (construct IS NULL AND provenance = 'hand-written'), 0)
        / nullif(sum(total_ns), 0) AS hand_written_pct,
    100 - named_pct - hand_written_pct AS neither_pct,
    100 * coalesce(sum(total_ns) FILTER (construct IS NOT NULL AND judgment IS NOT NULL), 0)
        / nullif(sum(total_ns) FILTER (construct IS NOT NULL), 0) AS judged_pct,
    100 * coalesce(sum(total_ns) FILTER (judgment = 'efficient'), 0) / nullif(sum(total_ns), 0) AS efficient_pct,
    100 * coalesce(sum(total_ns) FILTER (judgment = 'replaceable'), 0) / nullif(sum(total_ns), 0) AS replaceable_pct
FROM step_operations
HAVING count(*) > 0;
