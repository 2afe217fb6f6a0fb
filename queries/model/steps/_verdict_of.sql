-- What bounds a step or a trace, from shares of its wall: one word, or mixed and several, in the order in which to
-- remove them: what makes the host wait comes first, for while it does nothing can be queued, or captured in a graph.
-- `late` is what late launches make it: launch-bound, or host-bound.
CREATE MACRO _verdict_of(
    gpu_pct, launch_pct, sync_pct, copy_pct, allocation_pct, communication_pct, dependency_pct, late, least_pct,
    busy_pct, main_pct
) AS (
    SELECT CASE
        WHEN gpu_pct >= busy_pct THEN ['GPU-bound']
        WHEN gpu_pct + dependency_pct >= 50 AND coalesce(total, 0) < 100 - busy_pct THEN ['GPU-bound']
        WHEN len(named) = 0 THEN ['unknown']
        WHEN 100 * most >= main_pct * total THEN [list_filter(named, lambda n: n.pct = most)[1].bound]
        ELSE ['mixed'] || list_transform(named, lambda n: n.bound)
    END
    FROM (
        SELECT
            named, list_max(list_transform(named, lambda n: n.pct)) AS most,
            list_sum(list_transform(named, lambda n: n.pct)) AS total
        FROM (
            SELECT list_filter([
                {'bound': 'allocation-bound', 'pct': allocation_pct}, {'bound': 'sync-bound', 'pct': sync_pct},
                {'bound': 'copy-bound', 'pct': copy_pct}, {'bound': 'communication-bound', 'pct': communication_pct},
                {'bound': late, 'pct': launch_pct}
            ], lambda n: n.pct >= least_pct) AS named
        )
    )
);
